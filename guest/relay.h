/*
 * relay: sbx-guest where its streams are a program's standard input and output that carry text
 * only, as those of a BoxLite box do: what is no UTF-8 would come out as another character.
 *
 *   sbx-guest relay [HELPER]       (or relay-alone: alone.h)
 *
 * Both ways the stream is in pieces that are checked (wire/piece.h), because it may come with
 * holes: then the guest is ended.
 */
#ifndef SBXD_GUEST_RELAY_H
#define SBXD_GUEST_RELAY_H

/*
 * Splits the process in two: the caller goes on in the child as the guest, with the program at
 * `helper` (NULL: none) as descriptor 3; the other half is between it and the streams, ends with
 * it, and with its exit status. 0 or -errno.
 */
int relay_enter(const char *helper);

#endif
