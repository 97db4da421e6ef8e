#include "url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../../include/redlock.h"
#include "options.h"

struct part {
  const char *at;
  size_t size;
};

enum { NOT_GIVEN = -1 };

static int hex(char c)
{
  if (c >= '0' && c <= '9')
    return c - '0';
  c |= 32;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A copy with %XX decoded; NULL with *bad set for a broken or NUL escape, NULL alone for want of memory. */
static char *decode(struct part p, int *bad)
{
  char *out = malloc(p.size + 1);
  size_t n = 0;
  *bad = 0;
  if (!out)
    return NULL;
  for (size_t i = 0; i < p.size; i++) {
    if (p.at[i] != '%') {
      out[n++] = p.at[i];
      continue;
    }
    if (i + 2 >= p.size || hex(p.at[i + 1]) < 0 || hex(p.at[i + 2]) < 0 || (p.at[i + 1] == '0' && p.at[i + 2] == '0')) {
      *bad = 1;
      free(out);
      return NULL;
    }
    out[n++] = (char)(hex(p.at[i + 1]) * 16 + hex(p.at[i + 2]));
    i += 2;
  }
  out[n] = 0;
  return out;
}

static struct part skip(struct part p, size_t n)
{
  return (struct part){p.at + n, p.size - n};
}

/* The part before the first c, which is taken off rest together with c; all of it if there is none, as found says. */
static struct part split(struct part *rest, char c, int *found)
{
  struct part head = *rest;
  const char *at = rest->size ? memchr(rest->at, c, rest->size) : NULL;
  *found = at != NULL;
  if (at)
    head.size = (size_t)(at - rest->at);
  *rest = skip(*rest, head.size + (size_t)*found);
  return head;
}

/* The part before the last c, in the same way; nothing if there is none. */
static struct part split_last(struct part *rest, char c)
{
  struct part head = *rest;
  while (head.size && head.at[head.size - 1] != c)
    head.size--;
  *rest = skip(*rest, head.size);
  head.size -= head.size > 0;
  return head;
}

static int number(struct part p, long max, long *out)
{
  long n = 0;
  if (p.size == 0 || p.size > 9)
    return 0;
  for (size_t i = 0; i < p.size; i++) {
    if (p.at[i] < '0' || p.at[i] > '9')
      return 0;
    n = n * 10 + (p.at[i] - '0');
  }
  *out = n;
  return n <= max;
}

/* Decodes p into *out: REDLOCK_OK or why not. */
static int take(char **out, struct part p, const char *what, struct rlk_text *why)
{
  int bad;
  *out = decode(p, &bad);
  return *out ? REDLOCK_OK : bad ? rlk_refuse(why, what) : REDLOCK_NO_MEMORY;
}

static int parse_credentials(struct rlk_url *url, struct part *rest, struct rlk_text *why)
{
  int colon, status = REDLOCK_OK;
  struct part password = split_last(rest, '@'), user = split(&password, ':', &colon);
  if (user.size)
    status = take(&url->user, user, "the user name has a broken % escape", why);
  if (status == REDLOCK_OK && password.size)
    status = take(&url->password, password, "the password has a broken % escape", why);
  if (status == REDLOCK_OK && url->user && !url->password)
    return rlk_refuse(why, "a user needs a password");
  return status;
}

static int parse_database(struct rlk_url *url, struct part p, struct rlk_text *why)
{
  long n;
  if (url->database != NOT_GIVEN)
    return rlk_refuse(why, "the database is given twice");
  if (!number(p, 1000000, &n))
    return rlk_refuse(why, "the database is not a number from 0 to 1000000");
  url->database = (int)n;
  return REDLOCK_OK;
}

/* 500ms, 30s, 5m, 1h: 0 for anything else, and for values that max_ttl_ms does not allow. */
static int64_t duration_ms(struct part p)
{
  static const struct {
    const char *name;
    int64_t ms;
  } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
  size_t digits = 0;
  long n;
  while (digits < p.size && p.at[digits] >= '0' && p.at[digits] <= '9')
    digits++;
  if (!number((struct part){p.at, digits}, RLK_DAY_MS, &n))
    return 0;
  for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
    if (strlen(units[i].name) == p.size - digits && memcmp(units[i].name, p.at + digits, p.size - digits) == 0)
      return n * units[i].ms >= RLK_TTL_MS_MIN && n * units[i].ms <= RLK_DAY_MS ? n * units[i].ms : 0;
  return 0;
}

static int is(struct part p, const char *word)
{
  return p.size == strlen(word) && memcmp(p.at, word, p.size) == 0;
}

static int parse_parameter(struct rlk_url *url, struct part p, struct rlk_text *why)
{
  int found;
  char word[64];
  struct part name = split(&p, '=', &found);
  if (found && is(name, "db"))
    return parse_database(url, p, why);
  if (found && is(name, "max_ttl") && url->max_ttl_ms)
    return rlk_refuse(why, "max_ttl is given twice");
  if (found && is(name, "max_ttl")) {
    url->max_ttl_ms = duration_ms(p);
    return url->max_ttl_ms ? REDLOCK_OK : rlk_refuse(why, "max_ttl is not a duration from 20ms to 24h, such as 5m");
  }
  snprintf(word, sizeof word, "%.*s", (int)(name.size < 63 ? name.size : 63), name.size ? name.at : "");
  if (rlk_option_find(word, 0) >= 0) {
    rlk_text_format(why, "%s is an option of the client: a URL takes no option but max_ttl", word);
    return REDLOCK_INVALID;
  }
  return rlk_refuse(why, "the only parameters are db and max_ttl");
}

static int parse_query(struct rlk_url *url, struct part query, struct rlk_text *why)
{
  int more = 1, status = REDLOCK_OK;
  while (more && status == REDLOCK_OK)
    status = parse_parameter(url, split(&query, '&', &more), why);
  return status;
}

static int parse_port(struct rlk_url *url, struct part p, struct rlk_text *why)
{
  long n;
  if (!number(p, 65535, &n) || n == 0)
    return rlk_refuse(why, "the port is not a number from 1 to 65535");
  url->port = (uint16_t)n;
  return REDLOCK_OK;
}

/* host, host:port, [v6], [v6]:port */
static int parse_host(struct rlk_url *url, struct part p, struct rlk_text *why)
{
  int found;
  struct part host;
  if (p.size && p.at[0] == '[') {
    p = skip(p, 1);
    host = split(&p, ']', &found);
    if (!found || host.size == 0 || (p.size && p.at[0] != ':'))
      return rlk_refuse(why, "the address in brackets is not complete");
    found = p.size > 0;
    p = skip(p, (size_t)found);
  } else {
    host = split(&p, ':', &found);
  }
  if (host.size == 0)
    return rlk_refuse(why, "the host is missing");
  url->port = 6379;
  if (found) {
    int status = parse_port(url, p, why);
    if (status != REDLOCK_OK)
      return status;
  }
  return take(&url->host, host, "the host has a broken % escape", why);
}

static int parse_network(struct rlk_url *url, struct part rest, struct rlk_text *why)
{
  int has_query, slash, status;
  struct part path = split(&rest, '?', &has_query), server = split(&path, '/', &slash);
  status = parse_credentials(url, &server, why);
  if (status == REDLOCK_OK)
    status = parse_host(url, server, why);
  if (status == REDLOCK_OK && path.size)
    status = parse_database(url, path, why);
  if (status == REDLOCK_OK && has_query)
    status = parse_query(url, rest, why);
  return status;
}

static int parse_unix(struct rlk_url *url, struct part rest, struct rlk_text *why)
{
  int has_query, status;
  struct part path = split(&rest, '?', &has_query);
  status = parse_credentials(url, &path, why);
  if (status != REDLOCK_OK)
    return status;
  if (path.size == 0 || path.at[0] != '/')
    return rlk_refuse(why, "the path of a unix socket starts with /");
  status = take(&url->host, path, "the path has a broken % escape", why);
  if (status == REDLOCK_OK && strlen(url->host) > 107)
    return rlk_refuse(why, "the path of a unix socket has more than 107 bytes");
  return status == REDLOCK_OK && has_query ? parse_query(url, rest, why) : status;
}

static int make_name(struct rlk_url *url)
{
  char database[24] = "";
  size_t size = strlen(url->host) + 64;
  url->name = malloc(size);
  if (!url->name)
    return REDLOCK_NO_MEMORY;
  if (url->database)
    snprintf(database, sizeof database, "/%d", url->database);
  if (url->is_unix)
    snprintf(url->name, size, "unix:%s%s%s", url->host, url->database ? "?db=" : "", url->database ? database + 1 : "");
  else
    snprintf(url->name, size, strchr(url->host, ':') ? "[%s]:%u%s" : "%s:%u%s", url->host, url->port, database);
  return REDLOCK_OK;
}

static int starts(struct part p, const char *with)
{
  return p.size >= strlen(with) && strncasecmp(p.at, with, strlen(with)) == 0;
}

static int parse(struct rlk_url *url, struct part p, struct rlk_text *why)
{
  int status;
  for (size_t i = 0; i < p.size; i++)
    if ((unsigned char)p.at[i] <= 0x20 || p.at[i] == 0x7f)
      return rlk_refuse(why, "a URL has a space or a control character");
  url->is_unix = starts(p, "unix://");
  url->is_tls = starts(p, "rediss://");
  if (url->is_unix)
    status = parse_unix(url, skip(p, 7), why);
  else if (url->is_tls || starts(p, "redis://"))
    status = parse_network(url, skip(p, url->is_tls ? 9 : 8), why);
  else
    status = rlk_refuse(why, "a URL must start with redis://, rediss:// or unix://");
  if (url->database == NOT_GIVEN)
    url->database = 0;
  return status == REDLOCK_OK ? make_name(url) : status;
}

int rlk_url_parse(struct rlk_url *url, const char *text, size_t size, struct rlk_text *why)
{
  int status;
  *url = (struct rlk_url){.database = NOT_GIVEN};
  status = parse(url, (struct part){text, size}, why);
  if (status == REDLOCK_OK)
    return status;
  rlk_url_free(url);
  if (status == REDLOCK_INVALID)
    rlk_text_add(why, "; allowed: redis://[user:password@]host[:port][/database], rediss:// for TLS, or "
                      "unix://[user:password@]/path[?db=n]");
  return status;
}

static int copy(char **out, const char *from)
{
  *out = from ? strdup(from) : NULL;
  return !from || *out ? 0 : -1;
}

int rlk_url_copy(struct rlk_url *url, const struct rlk_url *from)
{
  *url = *from;
  url->host = url->user = url->password = url->name = NULL;
  if (copy(&url->host, from->host) == 0 && copy(&url->user, from->user) == 0 &&
      copy(&url->password, from->password) == 0 && copy(&url->name, from->name) == 0)
    return REDLOCK_OK;
  rlk_url_free(url);
  return REDLOCK_NO_MEMORY;
}

void rlk_url_free(struct rlk_url *url)
{
  free(url->host);
  free(url->user);
  if (url->password)
    rlk_wipe(url->password, strlen(url->password));
  free(url->password);
  free(url->name);
  memset(url, 0, sizeof *url);
}

void rlk_url_format(const struct rlk_url *url, struct rlk_text *out)
{
  rlk_text_add(out, url->is_unix ? "unix://" : url->is_tls ? "rediss://" : "redis://");
  if (url->password)
    rlk_text_format(out, "%s:***@", url->user ? url->user : "");
  if (url->is_unix)
    rlk_text_add(out, url->host);
  else
    rlk_text_format(out, strchr(url->host, ':') ? "[%s]:%u" : "%s:%u", url->host, url->port);
  if (url->database)
    rlk_text_format(out, url->is_unix ? "?db=%d" : "/%d", url->database);
  if (url->max_ttl_ms)
    rlk_text_format(out, "%cmax_ttl=%lldms", url->is_unix && url->database ? '&' : '?', (long long)url->max_ttl_ms);
}

int rlk_url_same(const struct rlk_url *a, const struct rlk_url *b)
{
  if (a->is_unix != b->is_unix || a->port != b->port)
    return 0;
  return a->is_unix ? strcmp(a->host, b->host) == 0 : strcasecmp(a->host, b->host) == 0;
}

/* A colon stands in front of // or of a port. */
int rlk_url_list_is_public(const char *list)
{
  if (strpbrk(list, "@?%"))
    return 0;
  for (const char *at = list; (at = strchr(at, ':')) != NULL; at++) {
    size_t digits = strspn(at + 1, "0123456789");
    if (strncmp(at + 1, "//", 2) != 0 && (!digits || !strchr(", /\t\r\n", at[1 + digits])))
      return 0;
  }
  return 1;
}
