/* The API over a fake engine as a program, for tests in other languages. It prints its port. */
#include <unistd.h>

#include "tests/api/api_host.h"

int main(void)
{
    api_host_serve(&(struct api_options){.heartbeat_ms = 500}, STDOUT_FILENO);
}
