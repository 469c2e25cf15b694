/* Sagas in sagas, waits and groups: the result of definitions without faults, and how definitions grow when groups
 * begin. */
#include "definition_texts.h"

static bool find_child(void *context, struct slice name, uint32_t version, struct slice *body, uint32_t *version_found)
{
    static const struct {
        const char *name, *body;
    } sagas[] = {
        {"pack", "{'name':'pack','steps':[{'id':'box','call':'book'},{'id':'tape','call':'pay','after':[]},"
                 "{'id':'label','call':'book','after':['tape','box']}],'output':{'n':'${ .input.n }'}}"},
        {"ship", "{'name':'ship','deadline':'1h','steps':[{'id':'pack','saga':'pack','for_each':'${ .input.parcels }'},"
                 "{'id':'ready','signal':{'name':'truck.there'}},{'id':'post','call':'mail'}]}"},
    };
    struct arena *arena = context;

    assert_int_equal(version, 0);
    for (size_t i = 0; i < COUNT_OF(sagas); i++) {
        if (slice_is(name, sagas[i].name)) {
            *body = json_of(sagas[i].body, arena);
            *version_found = (uint32_t)i + 20;
            return true;
        }
    }
    return false;
}

static struct definition *saga_of(const char *text, struct arena *arena)
{
    struct tool_source source = {find_registered, arena, find_child};
    struct faults faults;

    faults_init(&faults, arena);
    struct definition *saga = definition_compile(json_of(text, arena), 1, &source, SLICE(""), arena, &faults);

    no_faults(&faults);
    assert_non_null(saga);
    return saga;
}

/* Returns the only fault of a document. */
static struct fault fault_of(const char *text, struct arena *arena)
{
    struct tool_source source = {find_registered, arena, find_child};
    struct faults faults;
    struct document document;

    faults_init(&faults, arena);
    document_check(json_of(text, arena), &source, arena, &faults, &document);
    assert_int_equal(faults.count, 1);
    return faults.items[0];
}

static struct arena arena;

/* --- what is kept --- */

TEST(waits_locks_and_followers_are_kept_as_written)
{
    struct definition *saga = saga_of(
        "{'name':'s','retention':'30d','locks':['order:${ .input.id }',{'key':'till','when_taken':'fail'},"
        "{'key':'desk','when_taken':'wait'}],'then':[{'saga':'invoice','input':{'id':'${ .input.id }'},'id':'inv-${ "
        ".steps.ok.result.note }'},{'saga':'s'}],'steps':["
        "{'id':'nap','sleep':'30m'},{'id':'until','sleep':'2030-01-31T09:00:00+01:00'},{'id':'then','sleep':'${ "
        ".input.at }'},"
        "{'id':'paid','signal':{'name':'paid.now','timeout':'2d'},'on_failure':'continue'},{'id':'any','signal':{'name'"
        ":"
        "'x'}},"
        "{'id':'ok','approve':{'show':{'sum':'${ .input.sum }'},'timeout':'1h','roles':['agent','admin']}},"
        "{'id':'plain','approve':{},'when':'${ .input.asks }','on_failure':'escalate'}]}",
        &arena);
    const struct step_definition *steps = saga->steps;

    assert_int_equal(saga->retention_ms, INT64_C(30) * 24 * 3600 * 1000);
    assert_int_equal(saga->lock_count, 3);
    assert_int_equal(saga->locks[0].key.count, 1);
    assert_true(!saga->locks[0].fails && saga->locks[1].fails && !saga->locks[2].fails);
    assert_true(slice_is(saga->locks[1].key.json, "\"till\""));
    assert_int_equal(saga->follower_count, 2);
    assert_true(slice_is(saga->followers[0].saga, "invoice") && slice_is(saga->followers[1].saga, "s"));
    assert_true(template_is_set(&saga->followers[0].input) && saga->followers[0].id.count == 1);
    assert_false(template_is_set(&saga->followers[1].input) || template_is_set(&saga->followers[1].id));

    assert_int_equal(steps[0].kind, STEP_SLEEP);
    assert_true(slice_is(steps[0].sleep.json, "\"30m\"") && steps[0].sleep.count == 0 && steps[2].sleep.count == 1);
    assert_int_equal(steps[3].kind, STEP_SIGNAL);
    assert_true(slice_is(steps[3].signal_name, "paid.now"));
    assert_int_equal(steps[3].wait_timeout_ms, 2 * 24 * 3600 * 1000);
    assert_int_equal(steps[3].on_failure, ON_FAILURE_CONTINUE);
    assert_int_equal(steps[4].wait_timeout_ms, 0);
    assert_int_equal(steps[5].kind, STEP_APPROVE);
    assert_int_equal(steps[5].roles, 1u << ROLE_AGENT | 1u << ROLE_ADMIN);
    assert_int_equal(steps[5].wait_timeout_ms, 3600000);
    assert_true(template_is_set(&steps[5].show) && !template_is_set(&steps[6].show));
    assert_int_equal(steps[6].roles, 1u << ROLE_OPERATOR);
    for (uint32_t i = 0; i < saga->step_count; i++) {
        assert_null(steps[i].tool);
        assert_false(step_is_group(&steps[i]) || steps[i].terminal || steps[i].compensate.is_set);
        assert_true(steps[i].group == UINT32_MAX && steps[i].element == ELEMENT_NONE && steps[i].member == i);
    }
    assert_int_equal(saga->tool_count + saga->child_count, 0);
}

TEST(an_element_is_seen_by_arguments_scope_and_the_steps_own_compensator)
{
    struct definition *saga = saga_of(
        "{'name':'s','steps':[{'id':'each','call':'book','for_each':'${ .input.list | map(select(.item)) "
        "}','concurrency':4,'with':{'n':'${ .item.n }','first':'${ .item.list[0] + 1 }'},'scope':'n-${ .item.n }',"
        "'compensate':{'tool':'refund','with':{'n':'${ .item.n }','r':'${ .result }'}},'on_failure':'continue'},"
        "{'id':'sum','call':'book','with':'${ .steps.each.result[0] }'},"
        "{'id':'again','saga':'pack','for_each':'${ .steps.each.result }','with':'${ .item }'},"
        "{'id':'use','call':'book','with':'${ .steps.again.result[1].n }'}]}",
        &arena);

    assert_true(step_is_group(&saga->steps[0]) && !step_is_group(&saga->steps[1]) && step_is_group(&saga->steps[2]));
    assert_int_equal(saga->steps[0].concurrency, 4);
    assert_int_equal(saga->steps[2].concurrency, 0);
    assert_int_equal(saga->steps[0].kind, STEP_CALL);
    assert_int_equal(saga->steps[2].kind, STEP_SAGA);
}

/* --- children --- */

TEST(children_are_found_at_every_depth_with_all_their_tools)
{
    struct arena borrowed;
    struct faults faults;
    struct tool_source source = {find_registered, &borrowed, find_child};

    arena_init(&borrowed, 1 << 14);
    faults_init(&faults, &arena);
    struct definition *saga = definition_compile(
        json_of("{'name':'s','steps':[{'id':'a','saga':'pack','with':{'n':1},'on_failure':'escalate'},"
                "{'id':'b','call':'book','with':'${ .steps.a.result.n }'},{'id':'c','saga':'ship'}]}",
                &borrowed),
        1, &source, SLICE(""), &arena, &faults);
    static const char *const tools[] = {"book", "mail", "pay", "refund"};

    no_faults(&faults);
    arena_fini(&borrowed);
    assert_int_equal(saga->child_count, 2);
    assert_true(slice_is(saga->children[0]->name, "pack") && slice_is(saga->children[1]->name, "ship"));
    assert_int_equal(saga->children[0]->version, 20);
    assert_int_equal(saga->children[1]->version, 21);
    assert_ptr_equal(saga->steps[0].child, saga->children[0]);
    assert_ptr_equal(saga->steps[2].child->steps[0].child, saga->children[0]); /* the child is compiled once */
    assert_true(slice_is(saga->steps[2].child_name, "ship"));
    assert_int_equal(saga->tool_count, COUNT_OF(tools));
    for (size_t i = 0; i < COUNT_OF(tools); i++) {
        assert_true(slice_is(saga->tools[i]->name, tools[i]));
    }
    assert_true(saga->steps[2].terminal && !saga->steps[0].terminal);
    assert_int_equal(saga->height, 2);
    assert_int_equal(saga->step_total, 3 + 3 + 3 + 3);
}

TEST(sagas_of_a_document_find_each_other_whatever_their_order)
{
    struct faults faults;
    struct document document;

    faults_init(&faults, &arena);
    document_check(
        json_of("{'tools':[{'name':'r','builtin':{'do':'echo'},'effect':'read'}],'sagas':["
                "{'name':'a','steps':[{'id':'x','saga':'b'},{'id':'y','saga':'c'}],'then':[{'saga':'c'},{'saga':"
                "'a'}]},"
                "{'name':'b','steps':[{'id':'x','saga':'c'}]},"
                "{'name':'c','steps':[{'id':'x','call':'r','with':'${ .input.x + 1 }'}]}]}",
                &arena),
        NULL, &arena, &faults, &document);
    no_faults(&faults);
    assert_int_equal(document.item_count, 4);
    assert_true(slice_is(document.items[1].name, "a") && slice_is(document.items[1].pointer, "/sagas/0"));
    assert_true(slice_is(document.items[3].name, "c") && slice_is(document.items[3].pointer, "/sagas/2"));
    assert_ptr_equal(document.items[1].saga->steps[1].child, document.items[3].saga);
    assert_int_equal(document.items[1].saga->child_count, 2);
    assert_int_equal(document.check_count, 2); /* the settings of the tool and the one program, each once */
}

TEST(eight_deep_is_allowed)
{
    struct faults faults;
    struct document document;
    struct buffer text;

    faults_init(&faults, &arena);
    buffer_init(&text, 1 << 16);
    buffer_put_text(&text, "{'tools':[{'name':'r','builtin':{'do':'echo'},'effect':'read'}],'sagas':[");
    for (int i = 0; i < CHILD_DEPTH_MAX; i++) {
        buffer_printf(&text, "{'name':'d%d','steps':[{'id':'x','saga':'d%d'}]},", i, i + 1);
    }
    buffer_printf(&text, "{'name':'d%d','steps':[{'id':'x','call':'r'}]}]}", CHILD_DEPTH_MAX);
    document_check(json_of(buffer_c(&text), &arena), NULL, &arena, &faults, &document);
    no_faults(&faults);
    assert_int_equal(document.items[1].saga->height, CHILD_DEPTH_MAX);
    assert_int_equal(document.items[1].saga->child_count, CHILD_DEPTH_MAX);
    buffer_fini(&text);
}

/* The sagas have 100 x 100 x 100 steps. */
TEST(a_saga_with_too_many_steps_in_its_children_is_refused)
{
    struct faults faults;
    struct document document;
    struct buffer text;

    faults_init(&faults, &arena);
    buffer_init(&text, 1 << 20);
    buffer_put_text(&text, "{'tools':[{'name':'r','builtin':{'do':'echo'},'effect':'read'}],'sagas':[");
    for (int depth = 0; depth < 3; depth++) {
        buffer_printf(&text, "%s{'name':'d%d','steps':[", depth ? "," : "", depth);
        for (int i = 0; i < 100; i++) {
            buffer_printf(&text, "%s{'id':'s%d',", i ? "," : "", i);
            if (depth == 2) {
                buffer_put_text(&text, "'call':'r'}");
            } else {
                buffer_printf(&text, "'saga':'d%d'}", depth + 1);
            }
        }
        buffer_put_text(&text, "]}");
    }
    buffer_put_text(&text, "]}");
    document_check(json_of(buffer_c(&text), &arena), NULL, &arena, &faults, &document);
    assert_int_equal(faults.count,
                     1); /* the fault is in the middle saga with 10,100 steps; the outermost is never counted */
    assert_true(slice_is(faults.items[0].pointer, "/sagas/1/steps"));
    buffer_fini(&text);
}

TEST(a_fault_in_a_registered_child_is_told_at_the_step_that_has_it)
{
    struct fault fault = fault_of("{'tools':[{'name':'book','builtin':{'do':'echo'},'effect':'once','terminal':true}],"
                                  "'sagas':[{'name':'s','steps':[{'id':'a','saga':'ship'}]}]}",
                                  &arena);

    assert_true(slice_is(fault.pointer, "/sagas/0/steps/0/saga"));
    assert_non_null(
        strstr(arena_text(&arena, fault.detail),
               "at /steps/0/saga: the saga `pack` cannot be a child: its version 20 does not compile here"));
}

TEST(the_terminal_rule_of_a_registered_child_is_told_from_its_parents)
{
    struct fault fault =
        fault_of("{'sagas':[{'name':'s','steps':[{'id':'a','saga':'ship'},{'id':'b','call':'book'}]}]}", &arena);

    assert_true(slice_is(fault.pointer, "/sagas/0/steps/1"));
    assert_non_null(strstr(arena_text(&arena, fault.detail), "comes after the terminal step `a`"));
    fault = fault_of("{'sagas':[{'name':'pack','steps':[{'id':'a','call':'mail'}]},"
                     "{'name':'s','steps':[{'id':'x','saga':'ship'}]}]}",
                     &arena); /* a terminal step in one saga breaks another saga that uses it for each element */
    assert_true(slice_is(fault.pointer, "/sagas/1/steps/0/saga"));
    assert_non_null(
        strstr(arena_text(&arena, fault.detail), "the saga `ship` cannot be a child: its version 21 does not"));
}

/* --- groups that begin --- */

static void same_step(const struct definition *saga, uint32_t at, const char *id, uint32_t group, uint32_t element,
                      uint32_t member)
{
    const struct step_definition *step = &saga->steps[at];

    assert_string_equal(step->id.ptr, id);
    assert_true(slice_equal(step->id, step->name));
    assert_int_equal(step->index, at);
    assert_int_equal(step->group, group);
    assert_int_equal(step->element, element);
    assert_int_equal(step->member, member);
}

TEST(groups_bring_their_members_under_their_own_names)
{
    uint32_t first;

    const struct definition *written = saga_of(
        "{'name':'s','steps':[{'id':'go','call':'book'},{'id':'ship','saga':'ship','when':'${ .input.x }'}]}", &arena);
    const struct definition *saga = definition_with_members(written, 1, ELEMENT_NONE, &arena, &first);
    const struct definition *ship = written->steps[1].child, *pack = ship->steps[0].child;

    assert_int_equal(first, 2);
    assert_int_equal(written->step_count, 2);
    assert_int_equal(saga->step_count, 5);
    assert_int_equal(saga->written_count, 2);
    same_step(saga, 2, "ship/pack", 1, ELEMENT_NONE, 0);
    same_step(saga, 3, "ship/ready", 1, ELEMENT_NONE, 1);
    same_step(saga, 4, "ship/post", 1, ELEMENT_NONE, 2);
    assert_ptr_equal(saga->steps[3].written_in, ship);
    assert_true(saga->steps[3].after_count == 1 && saga->steps[3].after[0] == 2 && saga->steps[4].after[0] == 3);
    assert_int_equal(saga->steps[2].after_count, 0);
    assert_true(saga->steps[4].terminal && !saga->steps[3].terminal);

    saga = definition_with_members(saga, 2, 2, &arena, &first);
    assert_int_equal(first, 5);
    same_step(saga, 5, "ship/pack#0", 2, 0, 0);
    same_step(saga, 6, "ship/pack#1", 2, 1, 0);
    assert_ptr_equal(saga->steps[6].written_in, ship);
    assert_true(step_is_group(&saga->steps[6]) && !template_is_set(&saga->steps[6].for_each));
    assert_int_equal(saga->steps[6].after_count, 0);

    saga = definition_with_members(saga, 6, ELEMENT_NONE, &arena, &first);
    same_step(saga, 7, "ship/pack#1/box", 6, ELEMENT_NONE, 0);
    same_step(saga, 8, "ship/pack#1/tape", 6, ELEMENT_NONE, 1);
    same_step(saga, 9, "ship/pack#1/label", 6, ELEMENT_NONE, 2);
    assert_ptr_equal(saga->steps[9].written_in, pack);
    assert_int_equal(saga->steps[9].after_count, 2);
    assert_true(saga->steps[9].after[0] == 8 && saga->steps[9].after[1] == 7);
    assert_true(slice_is(saga->steps[9].tool->name, "book") && saga->steps[9].compensate.is_set);

    assert_true(graph_before(saga, 0, 1)); /* the written steps keep their order */
    assert_false(graph_before(saga, 0, 9) || graph_before(saga, 8, 9));
    assert_true(graph_before(pack, 1, 2));
}

TEST(an_empty_group_brings_nothing)
{
    uint32_t first;

    const struct definition *written =
        saga_of("{'name':'s','steps':[{'id':'e','call':'book','for_each':'${ .input }'}]}", &arena);
    const struct definition *saga = definition_with_members(written, 0, 0, &arena, &first);

    assert_true(first == 1 && saga->step_count == 1);
}

TEST(members_are_added_in_shared_room_and_trying_disturbs_nobody)
{
    struct arena trial;
    uint32_t first, count = 1;

    arena_init(&trial, 1 << 14);
    const struct definition *written = saga_of(
        "{'name':'s','steps':[{'id':'e','call':'book','for_each':'${ .input }','when':'${ .input }'}]}", &arena);
    const struct definition *saga = written;
    const struct step_definition *steps = written->steps;
    int moved = 0;

    for (uint32_t i = 0; i < 200; i++) { /* no saga opens one group twice, but the array must have room */
        const struct definition *tried = definition_with_members(saga, 0, 2, &trial, &first), *before = saga;
        const struct definition *also = i % 7 == 0 ? definition_with_members(saga, 0, 3, &arena, &first) : NULL;

        saga = definition_with_members(saga, 0, 1, &arena, &first);
        moved += saga->steps != before->steps;
        assert_int_equal(first, count++);
        assert_int_equal(saga->step_count, count);
        assert_true(slice_is(saga->steps[first].id, "e#0") && slice_is(tried->steps[first + 1].id, "e#1"));
        assert_true(!also || slice_is(also->steps[first + 2].id, "e#2"));
    }
    for (uint32_t i = 1; i < saga->step_count; i++) {
        same_step(saga, i, "e#0", 0, 0, 0);
        assert_false(template_is_set(&saga->steps[i].when));
    }
    assert_true(moved < 60); /* the array moves only after a trial in the same arena, and when it is full */
    assert_ptr_equal(written->steps, steps);
    assert_true(template_is_set(&written->steps[0].for_each) && written->step_count == 1);
    arena_fini(&trial);
}

TEST(no_saga_has_more_than_ten_thousand_steps)
{
    uint32_t first;

    const struct definition *saga =
        saga_of("{'name':'s','steps':[{'id':'e','call':'book','for_each':'${ .input }'}]}", &arena);

    for (int i = 0; i < 9; i++) {
        saga = definition_with_members(saga, 0, FOR_EACH_MAX, &arena, &first);
    }
    assert_null(definition_with_members(saga, 0, FOR_EACH_MAX, &arena, &first));
    saga = definition_with_members(saga, 0, FOR_EACH_MAX - 1, &arena, &first);
    assert_int_equal(saga->step_count, SAGA_STEPS_MAX);
    assert_null(definition_with_members(saga, 0, 1, &arena, &first));
    assert_non_null(definition_with_members(saga, 0, 0, &arena, &first));
}

TEST(a_saga_awaits_the_signals_of_its_children_too)
{
    const struct definition *saga =
        saga_of("{'name':'s','steps':[{'id':'w','signal':{'name':'own'}},{'id':'ship','saga':'ship'}]}", &arena);

    assert_true(definition_awaits(saga, SLICE("own")) && definition_awaits(saga, SLICE("truck.there")));
    assert_false(definition_awaits(saga, SLICE("w")) || definition_awaits(saga, SLICE("truck")));
}

TEST_PROGRAM_ARENA(arena)
