/* What a program may set, through the public functions: options. No server is asked. */
#include "settings_world.h"

/* ---- options of a client ---- */

static void assert_defaults(void)
{
  const char *name;
  for (int i = 0; (name = redlock_option_at(i, REDLOCK_OPTION_NAME)); i++) {
    const char *initial = redlock_option_at(i, REDLOCK_OPTION_DEFAULT);
    if (strcmp(redlock_option_at(i, REDLOCK_OPTION_TYPE), "float") == 0)
      assert_true(atof(get(name)) == atof(initial));
    else
      assert_string_equal(get(name), initial);
  }
}

static void every_option_takes_its_default(void **state)
{
  const char *name;
  (void)state;
  assert_defaults();
  for (int i = 0; (name = redlock_option_at(i, REDLOCK_OPTION_NAME)); i++)
    assert_int_equal(set(name, redlock_option_at(i, REDLOCK_OPTION_DEFAULT)), REDLOCK_OK);
  assert_defaults();
}

#define VALUE(option, value) {option, value, option " is \"" value "\"; allowed: "}
#define URL(url, why) {"nodes", url, "nodes: entry 1, \"" url "\": " why "; allowed: "}
/* What may hold a password, if only by mistake, is not shown. */
#define SECRET(url, why) {"nodes", url, "nodes: entry 1: " why "; allowed: "}

/* What is refused, and the words for it: all of them, or up to what is allowed. */
static const struct {
  const char *option, *value, *words;
} refused[] = {
    VALUE("ttl_ms", "19"),
    VALUE("retry_jitter", "2"),
    VALUE("node_timeout_ms", "soon"),
    VALUE("client_name", "two words"),
    VALUE("strict_release", ""),
    VALUE("strict_release", "maybe"),
    VALUE("strict_release", "2"),
    VALUE("strict_release", "truex"),
    VALUE("guard", "bootstrap"),
    VALUE("guard", "look"),
    VALUE("cluster", ""),
    VALUE("cluster", "a b"),
    VALUE("cluster", "abcdefghijklmnopqrstuvwxyzabcdefg"),
    URL("rediss://h:0", "the port is not a number from 1 to 65535"),
    URL("http://h", "a URL must start with redis://, rediss:// or unix://"),
    URL("127.0.0.1:7001", "a URL must start with redis://, rediss:// or unix://"),
    URL("redis://", "the host is missing"),
    URL("redis://h:0", "the port is not a number from 1 to 65535"),
    URL("redis://h:65536", "the port is not a number from 1 to 65535"),
    SECRET("redis://u:sesame@h:99999", "the port is not a number from 1 to 65535"),
    SECRET("redis://h:x", "the port is not a number from 1 to 65535"),
    URL("redis://h/x", "the database is not a number from 0 to 1000000"),
    URL("redis://h/-1", "the database is not a number from 0 to 1000000"),
    SECRET("redis://[::1", "the address in brackets is not complete"),
    SECRET("redis://u%zz:p@h", "the user name has a broken % escape"),
    SECRET("redis://user@h", "a user needs a password"),
    URL("unix://run/r.sock", "the path of a unix socket starts with /"),
    SECRET("unix:///r.sock?x=1", "the only parameters are db and max_ttl"),
    URL("redis://h :1", "a URL has a space or a control character"),
    URL("a", "a URL must start with redis://, rediss:// or unix://"),
    SECRET("redis:/a", "a URL must start with redis://, rediss:// or unix://"),
    URL("redis://:6379", "the host is missing"),
    URL("redis://[]", "the address in brackets is not complete"),
    SECRET("redis://[::1]x", "the address in brackets is not complete"),
    SECRET("redis://u:sesame%2@a", "the password has a broken % escape"),
    SECRET("redis://u:sesame%00@a", "the password has a broken % escape"),
    SECRET("redis://sesame@a", "a user needs a password"),
    SECRET("redis://u:sesame@", "the host is missing"),
    SECRET("redis://a:1:2", "the port is not a number from 1 to 65535"),
    SECRET("redis://a?x=1", "the only parameters are db and max_ttl"),
    URL("unix://", "the path of a unix socket starts with /"),
    SECRET("redis://a?max_ttl=5", "max_ttl is not a duration from 20ms to 24h, such as 5m"),
    SECRET("redis://a?max_ttl=0s", "max_ttl is not a duration from 20ms to 24h, such as 5m"),
    SECRET("redis://a?max_ttl=19ms", "max_ttl is not a duration from 20ms to 24h, such as 5m"),
    SECRET("redis://a?max_ttl=25h", "max_ttl is not a duration from 20ms to 24h, such as 5m"),
    SECRET("redis://a?max_ttl=365d", "max_ttl is not a duration from 20ms to 24h, such as 5m"),
    SECRET("redis://a?max_ttl=999999999999h", "max_ttl is not a duration from 20ms to 24h, such as 5m"),
    SECRET("redis://a?max_ttl", "the only parameters are db and max_ttl"),
    SECRET("redis://a?ttl_ms=1000", "ttl_ms is an option of the client: a URL takes no option but max_ttl"),
    SECRET("redis://a?max_ttl_ms=1000", "max_ttl_ms is an option of the client: a URL takes no option but max_ttl"),
    SECRET("redis://a?guard=off", "guard is an option of the client: a URL takes no option but max_ttl"),
    SECRET("redis://a?db=1&db=1", "the database is given twice"),
    SECRET("redis://a/1?db=2", "the database is given twice"),
    SECRET("unix:///r.sock?db=1&max_ttl=5m&db=2", "the database is given twice"),
    SECRET("redis://a?max_ttl=5m&max_ttl=5m", "max_ttl is given twice"),
    SECRET("redis://a?", "the only parameters are db and max_ttl"),
    SECRET("redis://a?&db=1", "the only parameters are db and max_ttl"),
    SECRET("redis://:ses,ame@a", "the host is missing"),
    SECRET("redis://u:ses,ame@a", "the port is not a number from 1 to 65535"),
    {"nodes", "redis://u:77,ame@a", "nodes: entry 2: a URL must start with redis://, rediss:// or unix://; allowed: "},
    SECRET("redis://a?password=sesame", "the only parameters are db and max_ttl"),
    SECRET("redis://u:sesame/a", "the port is not a number from 1 to 65535"),
    {"nodes", "redis://h,,redis://i", "nodes: entry 2 is empty; allowed: "},
    {"nodes", "redis://h:1,", "nodes: entry 2 is empty; allowed: "},
    {"nodes", ",", "nodes: entry 1 is empty; allowed: "},
    {"nodes", "redis://127.0.0.1:7001,redis://127.0.0.1:7001",
     "nodes: 127.0.0.1:7001 is listed twice; every node must be a different server"},
    {"nodes", "redis://h,redis://h:6379", "nodes: h:6379 is listed twice; every node must be a different server"},
    {"nodes", "redis://h/1,redis://h/2", "nodes: h:6379/2 is listed twice; every node must be a different server"},
    {"nodes", "redis://:a@h,redis://:b@h", "nodes: h:6379 is listed twice; every node must be a different server"},
    {"nodes", "unix:///r.sock,unix:///r.sock",
     "nodes: unix:/r.sock is listed twice; every node must be a different server"},
    {"nodes", "redis://H,redis://h", "nodes: h:6379 is listed twice; every node must be a different server"},
    {"nodes", "redis://a?max_ttl=5m,redis://b", "nodes: max_ttl belongs at the end of the list, after the last URL"},
    {"tll_ms", "5", "there is no option \"tll_ms\"; did you mean ttl_ms?"},
    {"ttl", "5", "there is no option \"ttl\"; did you mean ttl_ms?"},
    {"password", "5", "there is no option \"password\"; did you mean password_file?"},
    {"retry", "5", "there is no option \"retry\"; did you mean retry_count?"},
    {"port", "5", "there is no option \"port\""},
    {"no_such", "5", "there is no option \"no_such\""},
};

static void a_bad_value_is_refused_in_words_and_changes_nothing(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
    const char *allowed = said + strlen(refused[i].words);
    if (set(refused[i].option, refused[i].value) != REDLOCK_INVALID)
      fail_msg("%s takes \"%s\"", refused[i].option, refused[i].value);
    assert_starts_with(message(), refused[i].words);
    assert_null(strstr(said, "ses")); /* the password */
    assert_null(strstr(said, "ame@"));
    if (*allowed)
      assert_says(range_of(refused[i].option), allowed);
    assert_defaults();
  }
}

/* A megabyte takes milliseconds, whatever it repeats. */
static void a_long_list_of_nodes_is_read_at_once(void **state)
{
  static const char *const parts[] = {"&", "&db=1", "?", "@", ":", "/", "%", ",", "a,", "redis://a,"};
  const size_t size = 1 << 20, head = strlen("redis://a?db=1");
  char *list = malloc(size + 1);
  (void)state;
  assert_non_null(list);
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
    clock_t began = clock();
    size_t part = strlen(parts[i]);
    memcpy(list, "redis://a?db=1", head);
    for (size_t at = head; at < size; at++)
      list[at] = parts[i][(at - head) % part];
    list[size] = 0;
    assert_int_equal(set("nodes", list), REDLOCK_INVALID);
    assert_true(clock() - began < CLOCKS_PER_SEC / 2);
  }
  free(list);
}

static void what_was_set_stays_after_a_refusal(void **state)
{
  (void)state;
  assert_int_equal(set("ttl_ms", "8000"), REDLOCK_OK);
  assert_string_equal(message(), "");
  assert_int_equal(set("ttl_ms", "19"), REDLOCK_INVALID);
  assert_string_equal(get("ttl_ms"), "8000");
  assert_int_equal(set("ttl_ms", "9000"), REDLOCK_OK);
  assert_string_equal(message(), "");
}

static void the_list_of_nodes_stays_after_a_refusal(void **state)
{
  char name[64];
  (void)state;
  assert_int_equal(set("nodes", "redis://a,redis://b,redis://c?max_ttl=5m"), REDLOCK_OK);
  assert_int_equal(set("nodes", "redis://d,redis://e,,"), REDLOCK_INVALID);
  assert_int_equal(redlock_client_node_count(client), 3);
  assert_true(redlock_client_node_name(client, 0, name, sizeof name) > 0);
  assert_string_equal(name, "a:6379");
  assert_string_equal(get("max_ttl_ms"), "300000");
}

static void truth_has_several_words(void **state)
{
  static const char *const yes[] = {"true", "1", "YES", "on"}, *const no[] = {"false", "0", "No", "off"};
  (void)state;
  for (int i = 0; i < 4; i++) {
    assert_int_equal(set("renew", yes[i]), REDLOCK_OK);
    assert_string_equal(get("renew"), "true");
    assert_int_equal(set("renew", no[i]), REDLOCK_OK);
    assert_string_equal(get("renew"), "false");
  }
}

static void texts_have_a_longest_size(void **state)
{
  static const struct {
    const char *name;
    int size_max;
  } texts[] = {{"client_name", 64}, {"key_prefix", 256}, {"cluster", 32}};
  char value[300], allowed[32];
  (void)state;
  for (int i = 0; i < 3; i++) {
    snprintf(allowed, sizeof allowed, "at most %d bytes", texts[i].size_max);
    memset(value, 'x', sizeof value);
    value[texts[i].size_max] = 0;
    assert_int_equal(set(texts[i].name, value), REDLOCK_OK);
    value[texts[i].size_max] = 'x';
    value[texts[i].size_max + 1] = 0;
    assert_int_equal(set(texts[i].name, value), REDLOCK_INVALID);
    assert_says(message(), texts[i].name);
    assert_says(message(), allowed);
  }
}

static void an_option_has_a_name_and_a_value(void **state)
{
  (void)state;
  assert_int_equal(redlock_client_get(client, "no_such", NULL, 0), -REDLOCK_INVALID);
  assert_int_equal(set(NULL, "5"), REDLOCK_INVALID);
  assert_int_equal(set("ttl_ms", NULL), REDLOCK_INVALID);
}

static void options_that_contradict_each_other_are_refused_by_open(void **state)
{
  static const struct {
    const char *options[3][2];
    const char *words[4];
  } cases[] = {
      {{{"ttl_ms", "40000"}, {"max_ttl_ms", "30000"}}, {"ttl_ms", "40000", "max_ttl_ms", "30000"}},
      {{{"ttl_ms", "1000"}, {"node_timeout_ms", "251"}}, {"node_timeout_ms", "251", "1000", "250"}},
      {{{"ttl_ms", "1000"}, {"min_validity_ms", "990"}}, {"ttl_ms", "1000", "min_validity_ms", "990"}},
      {{{"nodes", ""}}, {"nodes", "", "", ""}},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    redlock_client_free(client);
    client = redlock_client_new();
    set("nodes", NODE);
    for (int j = 0; j < 3 && cases[i].options[j][0]; j++)
      assert_int_equal(set(cases[i].options[j][0], cases[i].options[j][1]), REDLOCK_OK);
    assert_int_equal(redlock_client_open(client), REDLOCK_INVALID);
    for (int j = 0; j < 4; j++)
      assert_says(message(), cases[i].words[j]);
  }
}

static void the_environment_has_the_default_of_guard(void **state)
{
  (void)state;
  assert_string_equal(get("guard"), "marker");
  redlock_client_free(client);
  setenv("REDLOCK_GUARD", "", 1);
  client = redlock_client_new();
  assert_string_equal(get("guard"), "marker");
  redlock_client_free(client);
  setenv("REDLOCK_GUARD", "off", 1);
  client = redlock_client_new();
  unsetenv("REDLOCK_GUARD");
  assert_string_equal(get("guard"), "off");
  assert_int_equal(set("guard", "external"), REDLOCK_OK);
  assert_string_equal(get("guard"), "external");
}

static void the_environment_has_the_default_of_max_ttl_ms(void **state)
{
  (void)state;
  assert_string_equal(get("max_ttl_ms"), "30000");
  redlock_client_free(client);
  setenv("REDLOCK_MAX_TTL_MS", "60000", 1);
  client = redlock_client_new();
  assert_string_equal(get("max_ttl_ms"), "60000");
  assert_int_equal(set("nodes", "redis://a?max_ttl=5m"), REDLOCK_OK); /* a default is no contradiction */
  assert_string_equal(get("max_ttl_ms"), "300000");
  redlock_client_free(client);
  setenv("REDLOCK_MAX_TTL_MS", "0", 1);
  client = redlock_client_new();
  unsetenv("REDLOCK_MAX_TTL_MS");
  assert_int_equal(set("nodes", NODE), REDLOCK_OK);
  assert_int_equal(redlock_client_open(client), REDLOCK_INVALID);
  assert_string_equal(message(), "REDLOCK_MAX_TTL_MS is \"0\"; allowed: 20 to 86400000");
}

static void the_default_of_ttl_ms_is_at_most_max_ttl_ms(void **state)
{
  (void)state;
  assert_int_equal(set("nodes", "redis://127.0.0.1:1?max_ttl=8s"), REDLOCK_OK);
  assert_string_equal(get("ttl_ms"), "8000");
  assert_int_equal(set("nodes", "redis://127.0.0.1:1?max_ttl=9s"), REDLOCK_OK);
  assert_string_equal(get("ttl_ms"), "9000");
  assert_int_equal(set("nodes", "redis://127.0.0.1:1"), REDLOCK_OK);
  assert_string_equal(get("ttl_ms"), "10000");
  assert_int_equal(set("max_ttl_ms", "20"), REDLOCK_OK);
  assert_int_equal(redlock_client_open(client), REDLOCK_OK);
  assert_string_equal(get("ttl_ms"), "20");
}

static void a_ttl_ms_that_is_given_stands(void **state)
{
  (void)state;
  assert_int_equal(set("ttl_ms", "9000"), REDLOCK_OK);
  assert_int_equal(set("nodes", "redis://127.0.0.1:1?max_ttl=8s"), REDLOCK_OK);
  assert_string_equal(get("ttl_ms"), "9000");
  assert_int_equal(redlock_client_open(client), REDLOCK_INVALID);
  assert_non_null(strstr(message(), "ttl_ms 9000 is above max_ttl_ms, 8000"));
}

static void max_ttl_may_end_the_list_of_nodes(void **state)
{
  static const char *const lists[][2] = {
      {"redis://a,redis://b,redis://c?max_ttl=5m", "300000"},
      {"redis://a,redis://c/1?max_ttl=20ms", "20"},
      {"unix:///r.sock?db=2&max_ttl=24h", "86400000"},
      {"unix:///r.sock?max_ttl=90s&db=2", "90000"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
    char again[8192];
    assert_int_equal(set("nodes", lists[i][0]), REDLOCK_OK);
    assert_string_equal(get("max_ttl_ms"), lists[i][1]);
    snprintf(again, sizeof again, "%s", get("nodes"));
    assert_int_equal(set("nodes", again), REDLOCK_OK);
    assert_string_equal(get("max_ttl_ms"), lists[i][1]);
  }
  assert_int_equal(set("nodes", "redis://a"), REDLOCK_OK);
  assert_string_equal(get("max_ttl_ms"), "30000");
}

static void max_ttl_is_given_once(void **state)
{
  (void)state;
  assert_int_equal(set("max_ttl_ms", "60000"), REDLOCK_OK);
  assert_int_equal(set("nodes", "redis://127.0.0.1:1?max_ttl=5m"), REDLOCK_OK);
  assert_int_equal(redlock_client_open(client), REDLOCK_INVALID);
  assert_string_equal(message(), "max_ttl_ms is 60000, and the list of nodes ends in max_ttl=300000ms: give it once");
  assert_int_equal(set("max_ttl_ms", "300000"), REDLOCK_OK);
  assert_int_equal(redlock_client_open(client), REDLOCK_OK);
}

static void a_wrong_guard_in_the_environment_is_refused_at_open(void **state)
{
  static const char said_of_it[] = "REDLOCK_GUARD is \"on\\x0a\"; allowed: marker, external or off";
  (void)state;
  redlock_client_free(client);
  setenv("REDLOCK_GUARD", "on\n", 1);
  client = redlock_client_new();
  unsetenv("REDLOCK_GUARD");
  assert_int_equal(set("nodes", NODE), REDLOCK_OK);
  assert_int_equal(set("guard", "on"), REDLOCK_INVALID);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(redlock_client_open(client), REDLOCK_INVALID);
    assert_string_equal(message(), said_of_it);
  }
  assert_int_equal(set("guard", "off"), REDLOCK_OK);
  assert_int_equal(redlock_client_open(client), REDLOCK_OK);
}

static void an_open_client_is_not_changed(void **state)
{
  (void)state;
  assert_int_equal(set("ttl_ms", "1000"), REDLOCK_INVALID);
  assert_says(message(), "ttl_ms");
  assert_int_equal(redlock_client_open(client), REDLOCK_INVALID);
  assert_true(strlen(message()) > 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      FRESH(every_option_takes_its_default),
      FRESH(a_bad_value_is_refused_in_words_and_changes_nothing),
      FRESH(a_long_list_of_nodes_is_read_at_once),
      FRESH(what_was_set_stays_after_a_refusal),
      FRESH(the_list_of_nodes_stays_after_a_refusal),
      FRESH(truth_has_several_words),
      FRESH(texts_have_a_longest_size),
      FRESH(an_option_has_a_name_and_a_value),
      FRESH(options_that_contradict_each_other_are_refused_by_open),
      FRESH(the_environment_has_the_default_of_guard),
      FRESH(the_environment_has_the_default_of_max_ttl_ms),
      FRESH(max_ttl_may_end_the_list_of_nodes),
      FRESH(the_default_of_ttl_ms_is_at_most_max_ttl_ms),
      FRESH(a_ttl_ms_that_is_given_stands),
      FRESH(max_ttl_is_given_once),
      FRESH(a_wrong_guard_in_the_environment_is_refused_at_open),
      OPEN(an_open_client_is_not_changed),
  };
  unsetenv("REDLOCK_GUARD"); /* other tests are without a guard; these are of the defaults */
  return cmocka_run_group_tests(tests, NULL, NULL);
}
