/* Sessions of the console: how long they last, how many there are, and links that sign in once. */
#include <string.h>

#include "api/session.h"
#include "tests/lib/test.h"

static struct sessions sessions;
static const struct digest ada = {{1}}, bob = {{2}};
static const struct session_origin of_ada = {.token = {{1}}}, of_bob = {.token = {{2}}};

static struct digest begin(const struct digest *token, int64_t now_ms)
{
    char secret[SESSION_SECRET_BYTES];

    const struct session_origin origin = {*token, SLICE_NONE};

    session_begin(&sessions, &origin, now_ms, secret);
    assert_int_equal(strlen(secret), 64);
    return digest_sha256(slice_of(secret));
}

static bool lives(const struct digest *secret, int64_t now_ms)
{
    bool before = session_lives(&sessions, secret, now_ms);

    assert_int_equal(before, session_find(&sessions, secret, now_ms) != NULL);
    return before;
}

TEST(a_session_is_that_of_its_token_and_no_other_secret_finds_it)
{
    sessions = (struct sessions){0};
    struct digest by_ada = begin(&ada, 0), by_bob = begin(&bob, 0), of_nobody = digest_sha256(SLICE(""));

    assert_true(digest_equal(&session_find(&sessions, &by_ada, 1)->token, &ada));
    assert_true(digest_equal(&session_find(&sessions, &by_bob, 1)->token, &bob));
    assert_false(lives(&of_nobody, 1));
    session_end(&sessions, &by_ada);
    session_end(&sessions, &of_nobody);
    assert_false(lives(&by_ada, 1));
    assert_true(lives(&by_bob, 1));
}

TEST(a_session_ends_when_nothing_comes_from_it_and_after_twelve_hours_whatever_comes)
{
    sessions = (struct sessions){0};
    struct digest idle = begin(&ada, 0), busy = begin(&ada, 0);

    for (int64_t now = 0; now < SESSION_MS; now += SESSION_IDLE_MS / 2) {
        assert_true(lives(&busy, now));
    }
    assert_false(lives(&idle, SESSION_IDLE_MS));
    assert_true(lives(&busy, SESSION_MS - 1));
    assert_false(lives(&busy, SESSION_MS));
}

TEST(the_session_of_a_token_that_was_used_least_recently_makes_room)
{
    struct digest of[SESSIONS_OF_TOKEN_MAX];

    sessions = (struct sessions){0};
    struct digest other = begin(&bob, 0);

    for (size_t i = 0; i < SESSIONS_OF_TOKEN_MAX; i++) {
        of[i] = begin(&ada, (int64_t)i);
    }
    assert_true(lives(&of[0], 100));
    (void)begin(&ada, 101);
    assert_true(lives(&of[0], 102));
    assert_false(lives(&of[1], 102));
    assert_true(lives(&other, 102));
}

TEST(however_many_tokens_there_are_sessions_are_bounded)
{
    sessions = (struct sessions){0};
    for (int i = 0; i < SESSIONS_MAX + 10; i++) {
        struct digest token = {{(uint8_t)i, (uint8_t)(i >> 8)}};

        (void)begin(&token, i);
    }
    assert_int_equal(sessions.count, SESSIONS_MAX);
}

TEST(a_link_signs_in_once_within_ten_minutes)
{
    char first[SESSION_SECRET_BYTES], late[SESSION_SECRET_BYTES];
    struct session_origin origin;

    sessions = (struct sessions){0};
    session_code_make(&sessions, &of_ada, 0, first);
    session_code_make(&sessions, &of_bob, 0, late);
    assert_true(session_code_use(&sessions, slice_of(first), SESSION_CODE_MS - 1, NULL, &origin));
    assert_true(digest_equal(&origin.token, &ada));
    assert_false(session_code_use(&sessions, slice_of(first), SESSION_CODE_MS - 1, NULL, &origin));
    assert_false(session_code_use(&sessions, slice_of(late), SESSION_CODE_MS, NULL, &origin));
    assert_false(session_code_use(&sessions, SLICE(""), 0, NULL, &origin));
    assert_int_equal(sessions.code_count, 0);
}

TEST(a_session_keeps_the_jwt_that_it_was_made_from_and_so_does_a_link)
{
    const struct session_origin jwt = {ada, SLICE("head.claims.signature")};
    char code[SESSION_SECRET_BYTES], secret[SESSION_SECRET_BYTES];
    struct session_origin origin = {0};
    struct arena arena;

    arena_init(&arena, 256);
    sessions = (struct sessions){0};
    session_code_make(&sessions, &jwt, 0, code);
    session_code_make(&sessions, &jwt, 0, secret);
    assert_true(session_code_use(&sessions, slice_of(code), 1, &arena, &origin));
    assert_true(slice_equal(origin.jwt, jwt.jwt));
    session_begin(&sessions, &origin, 1, secret);
    struct digest found = digest_sha256(slice_of(secret));

    assert_string_equal(session_find(&sessions, &found, 2)->jwt, "head.claims.signature");
    session_begin(&sessions, &origin, 1, secret);
    session_end(&sessions, &found);
    sessions_fini(&sessions); /* of the other one, and of the link that nobody has used */
    assert_int_equal(sessions.count + sessions.code_count, 0);
    arena_fini(&arena);
}

TEST(links_that_nobody_uses_make_room_for_new_ones)
{
    char first[SESSION_SECRET_BYTES], last[SESSION_SECRET_BYTES];
    struct session_origin origin;

    sessions = (struct sessions){0};
    session_code_make(&sessions, &of_ada, 0, first);
    for (int i = 0; i < SESSION_CODES_MAX; i++) {
        session_code_make(&sessions, &of_ada, 1, last);
    }
    assert_int_equal(sessions.code_count, SESSION_CODES_MAX);
    assert_false(session_code_use(&sessions, slice_of(first), 1, NULL, &origin));
    assert_true(session_code_use(&sessions, slice_of(last), 1, NULL, &origin));
}

TEST_PROGRAM(NULL, NULL)
