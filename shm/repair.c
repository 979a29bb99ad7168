/*
 * repair: makes a slot usable again after somebody died in the middle of changing it. sbxd only,
 * and only when no live worker has the page. If we die here the scope lock is owner-dead again and
 * the next taker starts the same repair over; every step may be done twice.
 */
#include "shm/repair.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "shm/slot.h"

struct text_field {
	size_t offset;
	size_t size;
};

#define TEXT(member)                                                                      \
	{                                                                                 \
		offsetof(struct slot_sup, member), sizeof(((struct slot_sup *)0)->member) \
	}

static const struct text_field texts[] = {
    TEXT(token),
    TEXT(name),
    TEXT(driver),
    TEXT(isolation),
    TEXT(image),
    TEXT(user),
    TEXT(thread),
    TEXT(box_name),
    TEXT(last_error),
};

#define IN(state) (1U << (state))
#define RUNNING (IN(SLOT_STOCK) | IN(SLOT_ACTIVE) | IN(SLOT_CHECKING) | IN(SLOT_WARM))
#define SCOPED (IN(SLOT_ACTIVE) | IN(SLOT_CHECKING) | IN(SLOT_WARM))
#define POOLED \
	(IN(SLOT_STOCK) | IN(SLOT_CHECKING) | IN(SLOT_WARM)) /* what waits for whoever comes */

static bool texts_end(const struct slot_sup *part)
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const char *text = (const char *)part + texts[i].offset;

		if (text[texts[i].size - 1] != '\0')
			return false;
	}
	return true;
}

/* Empty, or exactly 16 lowercase hex digits. */
static bool token_is_sound(const char token[SHM_TOKEN_LEN])
{
	size_t len = strlen(token); /* texts_end() came first */

	return (len == 0 || len == 16) && strspn(token, "0123456789abcdef") == len;
}

/* What only a made box has, and where it can be. */
static bool making_is_sound(const struct slot_sup *part)
{
	uint32_t rest = part->flags & SLOT_FLAGS_REST;

	if (!(part->flags & SLOT_FLAG_MADE))
		return rest == 0 && !part->box_name[0];
	if (!(part->flags & SLOT_FLAG_ANONYMOUS) || !part->token[0] || (IN(part->state) & POOLED))
		return false;
	return (rest & (rest - 1)) == 0 &&
	       (!part->box_name[0] || slot_box_name_is_sound(part->box_name));
}

static bool digest_is_set(const uint8_t digest[32])
{
	static const uint8_t none[32];

	return memcmp(digest, none, sizeof(none)) != 0;
}

static bool link_is_sound(uint32_t link, uint32_t slots)
{
	return link < slots || link == SHM_NONE;
}

int repair_check_sup(const struct slot_sup *part, uint32_t slots)
{
	unsigned int state;

	if (part->state >= SLOT_STATES || part->source >= SOURCES || (part->flags & ~SLOT_FLAGS))
		return -EINVAL;
	if (!texts_end(part) || !token_is_sound(part->token) || part->worker_pid < 0)
		return -EINVAL;
	if (!link_is_sound(part->index_next, slots) || !link_is_sound(part->warm_prev, slots) ||
	    !link_is_sound(part->warm_next, slots))
		return -EINVAL;
	if (part->lease_span > SHM_LEASES || part->leases > part->lease_span)
		return -EINVAL;
	if (!making_is_sound(part))
		return -EINVAL;
	state = IN(part->state);
	if (!(state & (IN(SLOT_FREE) | IN(SLOT_QUARANTINED))) && part->generation == 0)
		return -EINVAL;
	if ((state & RUNNING) &&
	    (part->worker_pid == 0 || part->worker_start == 0 || !part->name[0]))
		return -EINVAL;
	if ((state & (IN(SLOT_STOCK) | IN(SLOT_WARM))) && part->leases != 0)
		return -EINVAL;
	if ((state & SCOPED) && !(part->flags & SLOT_FLAG_ANONYMOUS) &&
	    (!part->token[0] || !digest_is_set(part->identity)))
		return -EINVAL;
	return 0;
}

int repair_page(struct shm_page *page, void *ctx)
{
	static const struct slot_work no_work;
	const uint32_t *slot = ctx;

	if (page->slot != *slot)
		return -EINVAL;
	slot_publish_work(page, &no_work);
	for (size_t i = 0; i < SHM_CONNS; i++)
		atomic_store_explicit(&page->conns[i], 0, memory_order_relaxed);
	atomic_store_explicit(&page->in_flight, 0, memory_order_release);
	return 0;
}
