/* OpenSSL on sockets, as its manual shows it. No certificate is verified; reading ahead spares a system call. */
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>

#include "figures.h"
#include "limit.h"
#include "limit_raw.h"

static SSL_CTX *context;
static SSL *streams[MAX_NODES];

static _Noreturn void give_up(const char *what, int node)
{
  die("node %d: %s: %s", node, what, ERR_error_string(ERR_peek_last_error(), NULL));
}

void transport_begin(int node, int fd)
{
  if (!context)
    context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE);
  streams[node] = SSL_new(context);
  SSL_set_fd(streams[node], fd);
  if (SSL_connect(streams[node]) != 1)
    give_up("SSL_connect", node);
}

void transport_write(int node, const char *data, size_t size)
{
  while (size > 0) {
    int sent = SSL_write(streams[node], data, (int)size);
    if (sent <= 0 && SSL_get_error(streams[node], sent) != SSL_ERROR_WANT_WRITE)
      give_up("SSL_write", node);
    if (sent <= 0) {
      poll(&(struct pollfd){SSL_get_fd(streams[node]), POLLOUT, 0}, 1, -1);
      continue;
    }
    data += sent;
    size -= (size_t)sent;
  }
}

/* All records that were read from the socket; nothing yet where one has come in part. */
size_t transport_read(int node, char *data, size_t size)
{
  size_t got = 0;
  do {
    int n = SSL_read(streams[node], data + got, (int)(size - got));
    if (n <= 0 && SSL_get_error(streams[node], n) != SSL_ERROR_WANT_READ)
      give_up("SSL_read", node);
    if (n <= 0)
      break;
    got += (size_t)n;
  } while (got < size && SSL_has_pending(streams[node]));
  return got;
}
