/* template_note: what tells whether a template is whole. Worker and `sbx-worker image`; holds no
 * state. */
#include "drivers/qemu/template_note.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define TSC_TOLERANCE 500 /* one part in so many: measuring is worse than clocks are */

static int note_seal(const struct template_note *note, uint8_t out[DIGEST_LEN])
{
	const struct digest_part part = {note, offsetof(struct template_note, check)};

	return digest_sha256(&part, 1, out);
}

static int note_memory(int fd, uint64_t out[3])
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	out[0] = (uint64_t)st.st_size;
	out[1] = (uint64_t)st.st_mtim.tv_sec;
	out[2] = (uint64_t)st.st_mtim.tv_nsec;
	return 0;
}

static int note_state(int fd, uint8_t out[DIGEST_LEN])
{
	struct stat st;
	struct digest_part part;
	void *data;
	int rc;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size == 0)
		return -EBADMSG;
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (data == MAP_FAILED)
		return -errno;
	part = (struct digest_part){data, (size_t)st.st_size};
	rc = digest_sha256(&part, 1, out);
	(void)munmap(data, (size_t)st.st_size);
	return rc;
}

int template_note_fill(struct template_note *note, const struct qemu_plan *plan,
    const uint8_t digest[DIGEST_LEN], int memory, int state)
{
	int rc;

	memset(note, 0, sizeof(*note));
	note->size = sizeof(*note);
	note->tsc_khz = plan->tsc_khz;
	memcpy(note->digest, digest, DIGEST_LEN);
	rc = note_memory(memory, note->memory);
	if (rc == 0)
		rc = note_state(state, note->state);
	return rc == 0 ? note_seal(note, note->check) : rc;
}

int template_note_check(const struct template_note *note, const struct qemu_plan *plan,
    const uint8_t digest[DIGEST_LEN], int memory, int state)
{
	struct template_note now;
	uint32_t apart = note->tsc_khz > plan->tsc_khz ? note->tsc_khz - plan->tsc_khz
						       : plan->tsc_khz - note->tsc_khz;
	int rc = template_note_fill(&now, plan, digest, memory, state);

	if (rc < 0)
		return rc;
	now.tsc_khz = note->tsc_khz;
	rc = note_seal(&now, now.check);
	if (rc < 0)
		return rc;
	if (memcmp(&now, note, sizeof(now)) != 0)
		return -EBADMSG;
	return apart > plan->tsc_khz / TSC_TOLERANCE ? -ESTALE : 0;
}
