/*
 * Pins the connection string of a tool to the addresses that it may reach. Names are resolved here, the guard of
 * outgoing calls checks each address, and libpq gets only the allowed ones (`hostaddr`). So libpq connects to the
 * address that was checked. `host` stays in the string, because TLS verifies it.
 */
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "io/http/egress.h"
#include "io/postgres/connect.h"
#include "io/postgres/environment.h"

enum { ADDRESSES_MAX = 64, LIST_BYTES_MAX = ADDRESSES_MAX * 2 * DB_NAME_BYTES };

struct pin {
    const struct egress *egress;
    struct buffer names, addresses, ports;
    size_t count;              /* the length of these three lists */
    size_t denied, unresolved; /* the numbers of forbidden addresses and of names without an address */
};

static void list_put(struct buffer *list, const char *value, bool first)
{
    buffer_put_text(list, first ? "" : ",");
    buffer_put_text(list, value);
}

/* Adds an address. `address` is NULL for a local socket, whose kind sockaddr tells. */
static void address_add(struct pin *pin, const char *name, const struct sockaddr *socket_address, const char *address,
                        const char *port)
{
    if (egress_denies(pin->egress, socket_address)) {
        pin->denied++;
    } else if (pin->count < ADDRESSES_MAX) {
        list_put(&pin->names, name, pin->count == 0);
        list_put(&pin->addresses, address ? address : "", pin->count == 0);
        list_put(&pin->ports, port, pin->count == 0);
        pin->count++;
    }
}

/* libpq uses a local socket for a path, for a name in the abstract namespace, and when there is no host. */
static bool is_local(const char *name)
{
    return name[0] == '/' || name[0] == '@' || name[0] == '\0';
}

static void host_add(struct pin *pin, const char *name, const char *address, const char *port)
{
    const struct sockaddr local = {.sa_family = AF_UNIX};
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = address[0] ? AI_NUMERICHOST : 0};
    struct addrinfo *found = NULL;

    if (!address[0] && is_local(name)) {
        address_add(pin, name, &local, NULL, port);
        return;
    }
    if (getaddrinfo(address[0] ? address : name, NULL, &hints, &found) != 0) {
        pin->unresolved++;
        return;
    }
    for (const struct addrinfo *one = found; one; one = one->ai_next) {
        char text[DB_NAME_BYTES];

        if (getnameinfo(one->ai_addr, one->ai_addrlen, text, sizeof(text), NULL, 0, NI_NUMERICHOST) == 0) {
            address_add(pin, name, one->ai_addr, text, port);
        }
    }
    freeaddrinfo(found);
}

static const char *value_of(const PQconninfoOption *options, const char *keyword)
{
    for (; options->keyword; options++) {
        if (strcmp(options->keyword, keyword) == 0) {
            return options->val ? options->val : "";
        }
    }
    return "";
}

/* Returns the number of hosts. Returns 0 when the lists do not fit together; libpq would refuse them, too. */
static size_t hosts_add(struct pin *pin, const PQconninfoOption *options)
{
    const char *names = value_of(options, "host"), *addresses = value_of(options, "hostaddr"),
               *ports = value_of(options, "port");
    size_t count = db_list_count(addresses) > 0 ? db_list_count(addresses) : db_list_count(names);
    char name[DB_NAME_BYTES], address[DB_NAME_BYTES], port[DB_NAME_BYTES];

    if ((names[0] && db_list_count(names) != count) || (db_list_count(ports) > 1 && db_list_count(ports) != count)) {
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        if (!db_list_field(names, i, name) || !db_list_field(addresses, i, address) || !db_list_field(ports, i, port)) {
            return 0;
        }
        host_add(pin, name, address, port);
    }
    return count;
}

static const char *pinned_dsn(struct pin *pin, const PQconninfoOption *options, struct arena *arena)
{
    struct buffer out;
    const char *dsn;

    buffer_init(&out, DB_DSN_BYTES_MAX);
    for (const PQconninfoOption *option = options; option->keyword; option++) {
        bool ours = strcmp(option->keyword, "host") == 0 || strcmp(option->keyword, "hostaddr") == 0 ||
                    strcmp(option->keyword, "port") == 0;

        if (!ours && option->val && option->val[0]) {
            db_dsn_put(&out, option->keyword, option->val);
        }
    }
    db_dsn_put(&out, "host", buffer_c(&pin->names));
    db_dsn_put(&out, "hostaddr", buffer_c(&pin->addresses));
    db_dsn_put(&out, "port", buffer_c(&pin->ports));
    dsn = out.overflow ? NULL : arena_text(arena, buffer_slice(&out));
    explicit_bzero((char *)buffer_c(&out), out.len); /* the buffer may hold a password */
    buffer_fini(&out);
    return dsn;
}

static const char *pin_end(struct pin *pin, const PQconninfoOption *options, size_t host_count, struct arena *arena,
                           struct err *err)
{
    const char *dsn = NULL;

    if (host_count == 0 || pin->names.overflow || pin->addresses.overflow || pin->ports.overflow) {
        err_set(err, ERR_CONFIG, "the hosts of the connection string cannot be read");
        err_hint(err, "give as many ports and addresses as there are hosts");
    } else if (pin->count == 0 && pin->denied > 0 && pin->unresolved == 0) {
        err_set(err, ERR_FORBIDDEN, "the settings deny every address of the database");
        err_hint(err, "allow its network with --egress-allow, or change the tool");
    } else if (pin->count == 0) {
        err_set(err, ERR_STORE, "the host name of PostgreSQL is not known");
        err_hint(err, "check host in the connection string");
    } else {
        dsn = pinned_dsn(pin, options, arena);
        if (!dsn) {
            err_set(err, ERR_CONFIG, "the connection string is longer than allowed");
            err_hint(err, "name fewer hosts");
        }
    }
    return dsn;
}

const char *db_pin(const char *dsn, const struct egress *egress, size_t *host_count, struct arena *arena,
                   struct err *err)
{
    PQconninfoOption *options = PQconninfoParse(dsn, NULL);
    struct pin pin = {.egress = egress};
    const char *pinned;

    CHECK(options); /* the string was read before and names its server */
    buffer_init(&pin.names, LIST_BYTES_MAX);
    buffer_init(&pin.addresses, LIST_BYTES_MAX);
    buffer_init(&pin.ports, LIST_BYTES_MAX);
    *host_count = hosts_add(&pin, options);
    pinned = pin_end(&pin, options, *host_count, arena, err);
    buffer_fini(&pin.names);
    buffer_fini(&pin.addresses);
    buffer_fini(&pin.ports);
    PQconninfoFree(options);
    return pinned;
}
