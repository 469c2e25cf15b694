/* A doubly linked list whose links lie in the items. An item not in a list has NULL links. */
#ifndef SAGAD_BASE_LIST_H
#define SAGAD_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"

struct list_link {
    struct list_link *prev, *next;
};

struct list {
    struct list_link head;
    size_t count;
};

static inline void list_init(struct list *list)
{
    list->head.prev = list->head.next = &list->head;
    list->count = 0;
}

static inline bool list_empty(const struct list *list)
{
    return list->head.next == &list->head;
}

static inline bool list_linked(const struct list_link *link)
{
    return link->next != NULL;
}

static inline void list_push(struct list *list, struct list_link *link) /* at the end */
{
    CHECK(link->next == NULL);
    link->prev = list->head.prev;
    link->next = &list->head;
    list->head.prev->next = link;
    list->head.prev = link;
    list->count++;
}

static inline void list_push_front(struct list *list, struct list_link *link)
{
    CHECK(link->next == NULL);
    link->prev = &list->head;
    link->next = list->head.next;
    list->head.next->prev = link;
    list->head.next = link;
    list->count++;
}

static inline void list_remove(struct list *list, struct list_link *link)
{
    CHECK(link->next != NULL);
    link->prev->next = link->next;
    link->next->prev = link->prev;
    link->prev = link->next = NULL;
    list->count--;
}

static inline struct list_link *list_first(const struct list *list) /* NULL when empty */
{
    return list_empty(list) ? NULL : list->head.next;
}

static inline struct list_link *list_pop(struct list *list) /* takes the link at the front; NULL when empty */
{
    struct list_link *link = list_first(list);

    if (link) {
        list_remove(list, link);
    }
    return link;
}

static inline struct list_link *list_after(const struct list *list, const struct list_link *link) /* NULL at the end */
{
    return link->next == &list->head ? NULL : link->next;
}

/* This is a function, so that LIST_ITEM(list_pop(...), ...) pops once. */
static inline void *list_item(struct list_link *link, size_t offset)
{
    return link ? (char *)link - offset : NULL;
}

/* The item around a link that may be NULL; the link is evaluated once. */
#define LIST_ITEM(link_expression, type, member)                                                                       \
    (__extension__({                                                                                                   \
        struct list_link *list_item_link_ = (link_expression);                                                         \
        list_item_link_ ? container_of(list_item_link_, type, member) : NULL;                                          \
    }))

#endif
