#include "login.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int rlk_login_is_needed(const struct rlk_node *n)
{
  return n->url.password || RLK_STRING(n->net, PASSWORD_FILE)[0];
}

void rlk_login_wipe(struct rlk_login *login)
{
  rlk_wipe(login, sizeof *login);
}

/* Not by stdio, whose buffer would keep it. The size, or -errno. */
static ssize_t read_file(const char *path, char *out, size_t size)
{
  size_t got = 0;
  ssize_t n;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return -errno;
  do {
    n = read(fd, out + got, size - got);
    got += n > 0 ? (size_t)n : 0;
  } while ((n > 0 && got < size) || (n < 0 && errno == EINTR));
  if (n < 0)
    n = -errno;
  close(fd);
  return n < 0 ? n : (ssize_t)got;
}

static enum rlk_why refuse(struct rlk_reason *why, const char *option, const char *path, const char *reason)
{
  struct rlk_text text = rlk_text_in(why->words, sizeof why->words);
  why->why = RLK_WHY_FILE;
  rlk_text_format(&text, "%s: %s: ", option, reason);
  rlk_text_clean(&text, path);
  rlk_text_mark_cut(&text);
  return why->why;
}

/* Editors on Windows begin a file with it. */
#define BYTE_ORDER_MARK "\xef\xbb\xbf"

static void skip_mark(char *text)
{
  size_t size = strlen(BYTE_ORDER_MARK);
  if (strncmp(text, BYTE_ORDER_MARK, size) == 0)
    memmove(text, text + size, strlen(text + size) + 1);
}

/* The first line. */
static enum rlk_why read_line(const char *option, const char *path, char *out, struct rlk_reason *why)
{
  char system[RLK_WHY_SIZE];
  ssize_t size = read_file(path, out, RLK_SECRET_SIZE);
  size_t length;
  if (size < 0)
    return refuse(why, option, path, rlk_error_words((int)-size, system));
  if (size == RLK_SECRET_SIZE)
    return refuse(why, option, path, "more than 4095 bytes");
  out[size] = 0;
  length = strcspn(out, "\r\n");
  if (!out[length] && (ssize_t)length < size)
    return refuse(why, option, path, "its first line has a NUL byte");
  out[length] = 0;
  skip_mark(out);
  return *out ? RLK_WHY_NONE : refuse(why, option, path, "it is empty");
}

enum rlk_why rlk_login_read(struct rlk_login *login, const struct rlk_node *n, struct rlk_reason *why)
{
  const char *user_file = RLK_STRING(n->net, USER_FILE), *password_file = RLK_STRING(n->net, PASSWORD_FILE);
  login->user = n->url.user;
  login->password = n->url.password;
  if (login->password || !*password_file)
    return RLK_WHY_NONE;
  login->password = login->texts[0];
  if (read_line("password_file", password_file, login->texts[0], why))
    return why->why;
  if (!*user_file)
    return RLK_WHY_NONE;
  login->user = login->texts[1];
  return read_line("user_file", user_file, login->texts[1], why);
}
