/* A list keeps its order and its count, and an item knows whether it is in a list. */
#include "base/list.h"
#include "tests/lib/test.h"

struct item {
    int number;
    struct list_link link;
};

TEST(items_come_out_in_the_order_they_went_in)
{
    struct list list;
    struct item items[4] = {{.number = 0}, {.number = 1}, {.number = 2}, {.number = 3}};

    list_init(&list);
    assert_true(list_empty(&list));
    for (int i = 0; i < 4; i++) {
        assert_false(list_linked(&items[i].link));
        list_push(&list, &items[i].link);
        assert_true(list_linked(&items[i].link));
    }
    list_remove(&list, &items[1].link);
    assert_false(list_linked(&items[1].link));
    assert_int_equal(list.count, 3);
    assert_ptr_equal(list_after(&list, &items[0].link), &items[2].link);
    assert_null(list_after(&list, &items[3].link));
    assert_ptr_equal(list_first(&list), &items[0].link);
}

TEST(taking_an_item_from_a_pop_pops_once)
{
    struct list list;
    struct item items[3] = {{.number = 0}, {.number = 1}, {.number = 2}};

    list_init(&list);
    for (int i = 0; i < 3; i++) {
        list_push(&list, &items[i].link);
    }
    for (int i = 0; i < 3; i++) {
        struct item *item = LIST_ITEM(list_pop(&list), struct item, link);

        assert_ptr_equal(item, &items[i]);
        assert_int_equal(list.count, 2 - i);
    }
    assert_null(LIST_ITEM(list_pop(&list), struct item, link));
}

TEST(an_item_pushed_to_the_front_stands_before_all_others)
{
    struct list list;
    struct item items[3] = {{.number = 0}, {.number = 1}, {.number = 2}};

    list_init(&list);
    list_push_front(&list, &items[1].link); /* also into an empty list */
    list_push(&list, &items[2].link);
    list_push_front(&list, &items[0].link);
    assert_int_equal(list.count, 3);
    for (int i = 0; i < 3; i++) {
        assert_ptr_equal(list_pop(&list), &items[i].link);
    }
    assert_true(list_empty(&list));
}

TEST_PROGRAM(NULL, NULL)
