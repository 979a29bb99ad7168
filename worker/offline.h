/*
 * offline: what sbxctl has a worker do where no sbxd runs: ask every driver whether this host can
 * run it, and clean up after an instance that is dead.
 */
#ifndef SBXD_WORKER_OFFLINE_H
#define SBXD_WORKER_OFFLINE_H

/*
 *   probe INSTANCE RUNTIME_DIR STATE_DIR UID_BASE   can the drivers run here? One JSON object a
 * line. list  INSTANCE RUNTIME_DIR STATE_DIR UID_BASE   names of the boxes that have left something
 *   sweep INSTANCE RUNTIME_DIR STATE_DIR UID_BASE   removes them, and what they had in common
 *
 * Whoever asks has proven that the instance is dead, and keeps another sbxd from becoming it.
 * Returns the process's exit status: 0, 1 after it has said on standard error what failed, or -1
 * when the words are none of these.
 */
int offline_main(int argc, char **argv);

#endif
