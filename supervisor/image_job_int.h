/* image_job_int: what the files of orders about images share among themselves. */
#ifndef SBXD_SUPERVISOR_IMAGE_JOB_INT_H
#define SBXD_SUPERVISOR_IMAGE_JOB_INT_H

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/image_ref.h"
#include "lib/loop.h"
#include "supervisor/image_job.h"

struct job_hook {
	TAILQ_ENTRY(job_hook) link;
	struct image_hook hook;
};

struct image_job {
	TAILQ_ENTRY(image_job) link;
	struct sbxd *s;
	enum ctl_image_op op;
	char image[128];	       /* or the key of a template */
	char normal[IMAGE_NORMAL_LEN]; /* of a pull: those that mean the same are one */
	uint32_t memory_mib;	       /* of a template that is to be made, as the next two */
	uint32_t cpus_milli;
	uint32_t disk_mib;
	int prepared; /* likewise; a copy, as the next */
	int hold;
	bool running;
	bool answered;
	struct ctl_done done;
	int pidfd;
	int ctl;
	int result; /* memfd */
	struct loop_watch pid_watch;
	struct loop_watch ctl_watch;
	struct loop_timer timer;
	struct ctl_progress progress;
	TAILQ_HEAD(, job_hook) hooks;
};

struct image_jobs {
	TAILQ_HEAD(, image_job) list; /* in the order of their arrival */
	uint32_t count;
	bool canceled;
};

/* Starts the processes of those that wait, as far as they may be. */
void image_jobs_start_waiting(struct sbxd *s);

/* Forgets it; nobody is told. */
void image_job_free(struct image_job *j);

/* Starts its process. Whatever happens, image_job_end() follows, later, from the loop. */
void image_job_start(struct image_job *j);

/* How it ended, in our own words. */
void image_job_set_done(struct image_job *j, int code, const char *text);

/* Its process is gone: whoever waits is told, and it is no more. */
void image_job_end(struct image_job *j);

#endif
