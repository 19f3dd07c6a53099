/* Holds a Pod's namespaces open until it is told to go, and buries the dead
 * where it is the first process of the Pod. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void leave(int signal) {
	(void)signal;
	_exit(0);
}

static void bury(int signal) {
	(void)signal;
	while (waitpid(-1, NULL, WNOHANG) > 0) {
	}
}

int main(void) {
	struct sigaction on_leave = {.sa_handler = leave};
	struct sigaction on_child = {.sa_handler = bury, .sa_flags = SA_NOCLDSTOP};
	sigaction(SIGTERM, &on_leave, NULL);
	sigaction(SIGINT, &on_leave, NULL);
	sigaction(SIGCHLD, &on_child, NULL);
	for (;;)
		pause();
}
