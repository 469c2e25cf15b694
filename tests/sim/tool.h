/*
 * The services at the other end, and their books: what truly happened, by key. They stand behind the adapter "world",
 * whose calls cross a network that loses, delays and repeats messages.
 */
#ifndef SAGAD_TESTS_SIM_TOOL_H
#define SAGAD_TESTS_SIM_TOOL_H

#include "adapters/adapter.h"
#include "tests/sim/node.h"

extern const struct adapter adapter_world; /* settings: {"tool": NAME, "do": "act" | "undo" | "probe"} */

struct tool_entry {                      /* one request that reached a service; kept for the whole run */
    int64_t sent_us, at_us, answered_us; /* answered: 0: never */
    struct op_key key;
    bool has_key;
    struct slice tool;
    bool is_undo, is_probe;
    uint32_t node, life; /* who sent it */
    bool effect;         /* the request took effect now: it was no known repeat, and was not refused */
    bool voided;         /* an undo that finds nothing and keeps a tombstone, or a request after one */
    uint64_t event;      /* world->event_count */
};

struct tool_book {
    struct tool_entry *entries;
    size_t count, capacity;
};
extern struct tool_book tool_book; /* entries in the order of arrival */

void tools_init(void); /* begins a run: draws the services from the scenario's seed */
/* Tells what truly happened with this key, for people, who look before they decide. */
bool tool_has_happened(struct op_key key, bool *is_undone);
void tools_heal(void);                                /* from now on services answer every request well and soon */
void tools_disturb(int64_t for_us, uint32_t variant); /* for a while most requests have trouble of the same kind */

#endif
