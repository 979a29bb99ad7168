/* names: what counters and histograms of the table are called. Any process; holds no state. */
#include "shm/names.h"

#include "shm/layout.h"

static const char *const counter_names[COUNTERS] = {
    [COUNTER_ACQUIRE_ACTIVE] = "acquire_active",
    [COUNTER_ACQUIRE_WARM] = "acquire_warm",
    [COUNTER_ACQUIRE_PREWARMED] = "acquire_prewarmed",
    [COUNTER_ACQUIRE_COLD] = "acquire_cold",
    [COUNTER_ACQUIRE_FAILED] = "acquire_failed",
    [COUNTER_RELEASES] = "releases",
    [COUNTER_BOOTS] = "boots",
    [COUNTER_BOOT_FAILURES] = "boot_failures",
    [COUNTER_CHECKS] = "checks",
    [COUNTER_CHECK_FAILURES] = "check_failures",
    [COUNTER_EVICTIONS] = "evictions",
    [COUNTER_IDLE_CLOSES] = "idle_closes",
    [COUNTER_CLOSES] = "closes",
    [COUNTER_WORKER_CRASHES] = "worker_crashes",
    [COUNTER_LOCK_RECOVERIES] = "lock_recoveries",
    [COUNTER_QUARANTINES] = "quarantines",
    [COUNTER_HANDOVERS] = "handovers",
    [COUNTER_HANDBACKS] = "handbacks",
    [COUNTER_REJECTED_REQUESTS] = "rejected_requests",
    [COUNTER_PAST_COMMANDS] = "past_commands",
    [COUNTER_PAST_COMMAND_FAILURES] = "past_command_failures",
    [COUNTER_PAST_BYTES_IN] = "past_bytes_in",
    [COUNTER_PAST_BYTES_OUT] = "past_bytes_out",
    [COUNTER_CREATES] = "creates",
    [COUNTER_STARTS] = "starts",
    [COUNTER_STOPS] = "stops",
};

static const char *const hist_names[HISTS] = {
    [HIST_ACQUIRE_ACTIVE] = "active",
    [HIST_ACQUIRE_WARM] = "warm",
    [HIST_ACQUIRE_PREWARMED] = "prewarmed",
    [HIST_ACQUIRE_COLD] = "cold",
    [HIST_BOOT] = "boot",
    [HIST_CHECK] = "check",
    [HIST_CLOSE] = "close",
};

_Static_assert(
    sizeof(counter_names) / sizeof(counter_names[0]) == COUNTERS, "every counter has a name");
_Static_assert(sizeof(hist_names) / sizeof(hist_names[0]) == HISTS, "every histogram has a name");

static const uint8_t state_status[] = {
    [SLOT_FREE] = BOX_STOPPED,
    [SLOT_RESERVED] = BOX_CONFIGURED,
    [SLOT_BOOTING] = BOX_CONFIGURED,
    [SLOT_STOCK] = BOX_RUNNING,
    [SLOT_ACTIVE] = BOX_RUNNING, /* unless its flags say otherwise */
    [SLOT_CHECKING] = BOX_RUNNING,
    [SLOT_WARM] = BOX_RUNNING,
    [SLOT_CLOSING] = BOX_STOPPING,
    [SLOT_QUARANTINED] = BOX_FAILED,
};

static const char *const status_names[] = {
    [BOX_CONFIGURED] = "configured",
    [BOX_RUNNING] = "running",
    [BOX_STOPPING] = "stopping",
    [BOX_STOPPED] = "stopped",
    [BOX_PAUSED] = "paused",
    [BOX_FAILED] = "failed",
    [BOX_UNKNOWN] = "unknown",
};

_Static_assert(
    sizeof(state_status) / sizeof(state_status[0]) == SLOT_STATES, "every state has a status");
_Static_assert(
    sizeof(status_names) / sizeof(status_names[0]) == BOX_STATUSES, "every status has a name");

enum shm_box_status shm_box_status(uint32_t state, uint32_t flags)
{
	if (state >= SLOT_STATES)
		return BOX_UNKNOWN;
	if (state == SLOT_ACTIVE && (flags & SLOT_FLAG_FRESH))
		return BOX_CONFIGURED;
	if (state == SLOT_ACTIVE && (flags & SLOT_FLAG_STOPPING))
		return BOX_STOPPING;
	if (state == SLOT_ACTIVE && (flags & SLOT_FLAG_STOPPED))
		return BOX_STOPPED;
	return (enum shm_box_status)state_status[state];
}

const char *shm_box_status_name(uint32_t status)
{
	return status < BOX_STATUSES ? status_names[status] : "?";
}

const char *shm_counter_name(uint32_t counter)
{
	return counter < COUNTERS ? counter_names[counter] : "?";
}

const char *shm_hist_name(uint32_t hist)
{
	return hist < HISTS ? hist_names[hist] : "?";
}
