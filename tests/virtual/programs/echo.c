/* Sends back what comes over the serial line, from a first byte of its own on, until an E. */
#include <fcntl.h>
#include <termios.h>
#include <unistd.h>

int main(void)
{
	char data[4096];
	struct termios mode;
	int line = open("/dev/ttyS0", O_RDWR);

	if (line < 0 || tcgetattr(line, &mode) < 0)
		return 1;
	cfmakeraw(&mode);
	if (tcsetattr(line, TCSANOW, &mode) < 0 || write(line, "R", 1) != 1)
		return 1;
	while (1) {
		ssize_t got = read(line, data, sizeof(data));

		if (got <= 0)
			return 1;
		if (data[got - 1] == 'E')
			return 0;
		if (write(line, data, got) != got)
			return 1;
	}
}
