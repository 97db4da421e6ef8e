/* What a program may set, through the public functions: options. No server is asked. */
#include "settings_world.h"

/* ---- options of a client ---- */

static void every_option_has_its_default(void **state)
{
  const char *name;
  (void)state;
  for (int i = 0; (name = redlock_option_at(i, REDLOCK_OPTION_NAME)); i++) {
    const char *initial = redlock_option_at(i, REDLOCK_OPTION_DEFAULT);
    if (strcmp(redlock_option_at(i, REDLOCK_OPTION_TYPE), "float") == 0)
      assert_true(atof(get(name)) == atof(initial));
    else
      assert_string_equal(get(name), initial);
    assert_int_equal(set(name, initial), REDLOCK_OK);
  }
}

/* Which values are numbers in range is a matter of test_options.c. */
static void a_refusal_names_option_value_and_range_and_changes_nothing(void **state)
{
  (void)state;
  assert_int_equal(set("ttl_ms", "8000"), REDLOCK_OK);
  assert_string_equal(message(), "");
  assert_refused("ttl_ms", "19");
  assert_string_equal(get("ttl_ms"), "8000");
  assert_refused("retry_jitter", "2");
  assert_refused("node_timeout_ms", "soon");
  assert_refused("client_name", "two words");
  assert_int_equal(set("ttl_ms", "9000"), REDLOCK_OK);
  assert_string_equal(message(), "");
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
  assert_refused("strict_release", "");
  assert_refused("strict_release", "maybe");
  assert_refused("strict_release", "2");
  assert_refused("strict_release", "truex");
}

static void texts_have_a_longest_size(void **state)
{
  static const struct {
    const char *name;
    int size_max;
  } texts[] = {{"client_name", 64}, {"key_prefix", 256}};
  char value[300];
  (void)state;
  for (int i = 0; i < 2; i++) {
    memset(value, 'x', sizeof value);
    value[texts[i].size_max] = 0;
    assert_int_equal(set(texts[i].name, value), REDLOCK_OK);
    value[texts[i].size_max] = 'x';
    value[texts[i].size_max + 1] = 0;
    assert_int_equal(set(texts[i].name, value), REDLOCK_INVALID);
    assert_says(message(), texts[i].name);
    assert_says(message(), range_of(texts[i].name));
  }
}

static void an_unknown_option_gets_the_nearest(void **state)
{
  (void)state;
  assert_int_equal(set("tll_ms", "5"), REDLOCK_INVALID);
  assert_says(message(), "tll_ms");
  assert_says(message(), "did you mean ttl_ms?");
  assert_int_equal(set("ttl", "5"), REDLOCK_INVALID);
  assert_says(message(), "did you mean ttl_ms?");
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

static void max_ttl_in_a_list_is_refused_in_words(void **state)
{
  static const char *const lists[][2] = {
      {"redis://a?max_ttl=5m,redis://b", "max_ttl belongs at the end of the list"},
      {"redis://a?max_ttl=5", "max_ttl is not a duration from 20ms to 24h"},
      {"redis://a?max_ttl=0s", "max_ttl is not a duration from 20ms to 24h"},
      {"redis://a?max_ttl=19ms", "max_ttl is not a duration from 20ms to 24h"},
      {"redis://a?max_ttl=25h", "max_ttl is not a duration from 20ms to 24h"},
      {"redis://a?max_ttl=365d", "max_ttl is not a duration from 20ms to 24h"},
      {"redis://a?max_ttl=999999999999h", "max_ttl is not a duration from 20ms to 24h"},
      {"redis://a?max_ttl", "the only parameters are db and max_ttl"},
      {"redis://a?x=1", "the only parameters are db and max_ttl"},
      {"redis://a?ttl_ms=1000", "ttl_ms is an option of the client: a URL takes no option but max_ttl"},
      {"redis://a?max_ttl_ms=1000", "max_ttl_ms is an option of the client"},
      {"redis://a?guard=off", "guard is an option of the client"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
    assert_int_equal(set("nodes", lists[i][0]), REDLOCK_INVALID);
    assert_says(message(), lists[i][1]);
    assert_string_equal(get("max_ttl_ms"), "30000");
  }
}

static void max_ttl_is_given_once(void **state)
{
  (void)state;
  assert_int_equal(set("max_ttl_ms", "60000"), REDLOCK_OK);
  assert_int_equal(set("nodes", "redis://a?max_ttl=5m"), REDLOCK_OK);
  assert_int_equal(redlock_client_open(client), REDLOCK_INVALID);
  assert_string_equal(message(), "max_ttl_ms is 60000, and the list of nodes ends in max_ttl=300000ms: give it once");
  assert_int_equal(set("max_ttl_ms", "300000"), REDLOCK_OK);
  assert_int_equal(redlock_client_open(client), REDLOCK_OK);
}

static void values_of_an_earlier_version_warn(void **state)
{
  (void)state;
  assert_int_equal(set("nodes", NODE), REDLOCK_OK);
  assert_int_equal(set("max_ttl_ms", "auto"), REDLOCK_OK);
  assert_string_equal(get("max_ttl_ms"), "30000");
  assert_int_equal(set("guard", "uptime"), REDLOCK_OK);
  assert_string_equal(get("guard"), "marker");
  assert_int_equal(set("guard", "bootstrap"), REDLOCK_INVALID);
  assert_int_equal(set("guard", "look"), REDLOCK_INVALID);
  assert_says(message(), "allowed: marker, external or off");
  assert_int_equal(redlock_client_open(client), REDLOCK_OK);
  for (int i = 0; i < 2; i++) {
    char event[300];
    assert_true(redlock_client_event(client, event, sizeof event) > 0);
    assert_says(event, i ? "guard = uptime is marker now" : "max_ttl_ms = auto is 30000 now");
  }
}

static void names_of_clusters(void **state)
{
  (void)state;
  assert_string_equal(get("cluster"), "-");
  assert_int_equal(set("cluster", "a.b_c-9"), REDLOCK_OK);
  assert_int_equal(set("cluster", ""), REDLOCK_INVALID);
  assert_int_equal(set("cluster", "a b"), REDLOCK_INVALID);
  assert_int_equal(set("cluster", "abcdefghijklmnopqrstuvwxyzabcdefg"), REDLOCK_INVALID);
  assert_says(message(), "allowed: at most 32 bytes");
  assert_string_equal(get("cluster"), "a.b_c-9");
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
      FRESH(every_option_has_its_default),
      FRESH(a_refusal_names_option_value_and_range_and_changes_nothing),
      FRESH(truth_has_several_words),
      FRESH(texts_have_a_longest_size),
      FRESH(an_unknown_option_gets_the_nearest),
      FRESH(options_that_contradict_each_other_are_refused_by_open),
      FRESH(the_environment_has_the_default_of_guard),
      FRESH(the_environment_has_the_default_of_max_ttl_ms),
      FRESH(max_ttl_may_end_the_list_of_nodes),
      FRESH(max_ttl_in_a_list_is_refused_in_words),
      FRESH(max_ttl_is_given_once),
      FRESH(values_of_an_earlier_version_warn),
      FRESH(names_of_clusters),
      FRESH(a_wrong_guard_in_the_environment_is_refused_at_open),
      OPEN(an_open_client_is_not_changed),
  };
  unsetenv("REDLOCK_GUARD"); /* other tests are without a guard; these are of the defaults */
  return cmocka_run_group_tests(tests, NULL, NULL);
}
