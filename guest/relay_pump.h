/*
 * relay_pump: what the relaying process does: the stream from its standard input to the guest,
 * taken out of its pieces, and from the guest to its standard output, in pieces as text.
 */
#ifndef SBXD_GUEST_RELAY_PUMP_H
#define SBXD_GUEST_RELAY_PUMP_H

/*
 * Goes on until the guest's output ends, nobody hears it any more, or the stream to it was wrong,
 * which is said as the last thing. `to` and `from` are the guest's standard input and output; `to`
 * is closed on the way. 0: as it should; -1: the stream was wrong or broke.
 */
int relay_pump(int to, int from);

#endif
