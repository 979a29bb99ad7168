/* notify: tells a service manager how we are. Runs in sbxd; holds no state. Protocol: sd_notify(3).
 */
#include "supervisor/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "lib/fd.h"

void notify_send(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	FD_SCOPED int fd = -1;
	size_t len = path ? strlen(path) : 0;

	if (len == 0 || len >= sizeof(addr.sun_path))
		return;
	memcpy(addr.sun_path, path, len);
	if (addr.sun_path[0] == '@')
		addr.sun_path[0] = '\0'; /* an abstract name */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	(void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&addr,
	    (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
			len)); /* best effort by its protocol */
}
