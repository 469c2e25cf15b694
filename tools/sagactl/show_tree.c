/* Decides which steps are members of which group and which steps are shown, and draws the lines of the tree in front of
 * them. */
#include "tools/sagactl/show_tree.h"

#include <string.h>

#include "base/map.h"
#include "tools/sagactl/output.h"

#define MEMBERS_MAX 12 /* the most members shown of a group; the rest becomes one line */
#define MEMBERS_SHOWN 10
#define STEPS_MAX 60 /* the most steps shown of the saga itself */
#define STEPS_SHOWN 50

static struct slice parent_id(struct slice id)
{
    for (size_t i = id.len; i-- > 0;) {
        if (id.ptr[i] == '#' || id.ptr[i] == '/') {
            return (struct slice){id.ptr, i};
        }
    }
    return SLICE_NONE;
}

static void adopt(struct tree *tree, uint32_t parent, uint32_t child)
{
    struct row *of = &tree->rows[parent];

    tree->rows[child].parent = parent;
    of->is_group = true;
    of->member_count++;
    if (of->last == ROW_NONE) {
        of->first = child;
    } else {
        tree->rows[of->last].next = child;
    }
    of->last = child;
}

static void read_row(struct tree *tree, struct map *by_id, uint32_t i, struct slice step)
{
    struct row *row = &tree->rows[i];
    struct slice id = show_member(tree->of->ctl, step, "id"), group = parent_id(id);
    const struct row *parent = tree->of->nested && group.ptr ? map_find(by_id, group.ptr, group.len) : NULL;

    *row = (struct row){
        .step = step, .name = id, .parent = ROW_NONE, .first = ROW_NONE, .last = ROW_NONE, .next = ROW_NONE};
    row->status = show_member(tree->of->ctl, step, "status");
    if (id.len > 0) {
        map_put(by_id, id.ptr, id.len, row);
    }
    if (parent) {
        size_t skip = group.len + (id.ptr[group.len] == '/');

        row->name = (struct slice){id.ptr + skip, id.len - skip};
        adopt(tree, (uint32_t)(parent - tree->rows), i);
    }
}

static void read_rows(struct tree *tree)
{
    struct slice steps = json_member(tree->of->saga, "steps"), step;
    struct json_walk walk = json_walk(steps);
    struct map by_id;

    tree->rows = arena_array(&tree->of->ctl->arena, json_count(steps) + 1, sizeof(*tree->rows));
    map_init(&by_id);
    while (json_type(steps) == JSON_ARRAY && json_next_element(&walk, &step)) {
        read_row(tree, &by_id, tree->count, step);
        tree->count++;
    }
    map_fini(&by_id);
}

static bool is_plain(struct slice status) /* a plain step is over, or has not begun */
{
    return slice_is(status, "completed") || slice_is(status, "pending") || slice_is(status, "skipped") ||
           slice_is(status, "compensated");
}

/* Returns the next sibling. The steps of the saga itself are the rows without a parent. */
static uint32_t next_of(const struct tree *tree, uint32_t parent, uint32_t i)
{
    if (parent != ROW_NONE) {
        return i == ROW_NONE ? tree->rows[parent].first : tree->rows[i].next;
    }
    for (i = i == ROW_NONE ? 0 : i + 1; i < tree->count; i++) {
        if (tree->rows[i].parent == ROW_NONE) {
            return i;
        }
    }
    return ROW_NONE;
}

/* Chooses the members to show: first those with trouble, then from the front. Returns how many are left out. */
static uint32_t choose(struct tree *tree, uint32_t parent)
{
    uint32_t count = 0, most = parent == ROW_NONE ? STEPS_MAX : MEMBERS_MAX,
             room = parent == ROW_NONE ? STEPS_SHOWN : MEMBERS_SHOWN;

    for (uint32_t i = next_of(tree, parent, ROW_NONE); i != ROW_NONE; i = next_of(tree, parent, i)) {
        tree->rows[i].hidden = true;
        count++;
    }
    if (count <= most || tree->of->all) {
        room = count;
    }
    uint32_t left_out = count - room;

    for (int plain = 0; plain < 2; plain++) {
        for (uint32_t i = next_of(tree, parent, ROW_NONE); i != ROW_NONE && room > 0; i = next_of(tree, parent, i)) {
            if (tree->rows[i].hidden && (plain || !is_plain(tree->rows[i].status))) {
                tree->rows[i].hidden = false;
                room--;
            }
        }
    }
    return left_out;
}

/* Returns "... 990 more, all completed". */
static struct slice sum_up(struct tree *tree, uint32_t parent, uint32_t left_out)
{
    struct slice statuses[16];
    uint32_t counts[16] = {0}, kinds = 0;
    struct buffer text;

    for (uint32_t i = next_of(tree, parent, ROW_NONE); i != ROW_NONE; i = next_of(tree, parent, i)) {
        uint32_t k = 0;

        if (!tree->rows[i].hidden) {
            continue;
        }
        while (k < kinds && !slice_equal(statuses[k], tree->rows[i].status)) {
            k++;
        }
        if (k < COUNT_OF(statuses)) {
            statuses[k] = tree->rows[i].status;
            counts[k]++;
            kinds += k == kinds;
        }
    }
    buffer_init(&text, 1024);
    buffer_printf(&text, "… %u more", left_out);
    if (kinds == 1) {
        buffer_printf(&text, ", all %.*s", SLICE_ARG(statuses[0]));
    }
    for (uint32_t k = 0; kinds > 1 && k < kinds; k++) {
        buffer_printf(&text, "%s%u %.*s", k ? ", " : ": ", counts[k], SLICE_ARG(statuses[k]));
    }
    struct slice said = arena_slice(&tree->of->ctl->arena, buffer_slice(&text));

    buffer_fini(&text);
    return said;
}

static void add_line(struct tree *tree, struct line line)
{
    if (tree->line_count == tree->line_capacity) {
        size_t capacity = tree->line_capacity ? tree->line_capacity * 2 : 64;
        struct line *lines = arena_array(&tree->of->ctl->arena, capacity, sizeof(*lines));

        if (tree->line_count > 0) {
            memcpy(lines, tree->lines, tree->line_count * sizeof(*lines));
        }
        tree->lines = lines;
        tree->line_capacity = capacity;
    }
    tree->lines[tree->line_count++] = line;
}

static struct slice joined(const struct tree *tree, struct slice a, const char *b)
{
    return arena_printf(&tree->of->ctl->arena, "%.*s%s", SLICE_ARG(a), b);
}

static uint32_t next_shown(const struct tree *tree, uint32_t parent, uint32_t i)
{
    do {
        i = next_of(tree, parent, i);
    } while (i != ROW_NONE && tree->rows[i].hidden);
    return i;
}

static void add_lines(struct tree *tree, uint32_t parent,
                      struct slice lead) /* NOLINT: recursion is as deep as groups are nested */
{
    uint32_t left_out = choose(tree, parent), i = next_shown(tree, parent, ROW_NONE);
    bool root = parent == ROW_NONE;

    while (i != ROW_NONE) {
        uint32_t next = next_shown(tree, parent, i);
        bool last = next == ROW_NONE && left_out == 0;
        struct slice below = root ? lead : joined(tree, lead, last ? "   " : "│  ");

        add_line(tree, (struct line){
                           .row = i, .prefix = root ? lead : joined(tree, lead, last ? "└─ " : "├─ "), .below = below});
        if (tree->rows[i].is_group) {
            add_lines(tree, i, below);
        }
        i = next;
    }
    if (left_out > 0) {
        add_line(tree, (struct line){.row = ROW_NONE,
                                     .prefix = root ? lead : joined(tree, lead, "└─ "),
                                     .text = sum_up(tree, parent, left_out)});
    }
}

void tree_grow(struct tree *tree, const struct timeline *of)
{
    tree->of = of;
    read_rows(tree);
    add_lines(tree, ROW_NONE, SLICE(""));
}
