#include "tls.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "../../include/redlock.h"
#include "../rules/options.h"
#include "line.h"
#include "openssl.h"

enum {
  /* parts of the data may be written, from a buffer that moves */
  MODE = RLK_SSL_MODE_ENABLE_PARTIAL_WRITE | RLK_SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER,
  CACHE = RLK_SSL_SESS_CACHE_CLIENT | RLK_SSL_SESS_CACHE_NO_INTERNAL, /* the callback keeps them */
  SHUTDOWN = RLK_SSL_SENT_SHUTDOWN | RLK_SSL_RECEIVED_SHUTDOWN,       /* so that a session stays good */
  RETRY_READ = RLK_BIO_FLAGS_READ | RLK_BIO_FLAGS_SHOULD_RETRY,
  RETRY_ANY = RETRY_READ | RLK_BIO_FLAGS_WRITE | RLK_BIO_FLAGS_IO_SPECIAL,
  RECORD_SIZE = 16384,
  RECORD_OVERHEAD = 256
};

#ifdef __APPLE__
#define MTIME st_mtimespec
#else
#define MTIME st_mtim
#endif

static const struct rlk_openssl *const f = &rlk_openssl;

/* By which a change of a file or folder is noticed; all 0: there is none. */
struct stamp {
  int64_t changed_ns, inode, size;
};

enum { CA_FILE, CA_PATH, CERT_FILE, KEY_FILE, FILES };

struct rlk_tls {
  SSL_CTX *ctx;
  BIO_METHOD *method;
  struct rlk_tls_settings settings;
  struct stamp stamps[FILES]; /* as of the last reading, whatever came of it */
  unsigned era;               /* counts the readings whose result is in use */
  int is_locked;              /* a file of the last reading has a passphrase */
};

/* Of a link: OpenSSL reads its socket; its output is kept until the socket takes it. */
struct rlk_tls_stream {
  struct rlk_link *link;
  SSL *ssl;
  struct rlk_buffer out;
  int error;        /* of the socket */
  int is_at_end;    /* the server has closed */
  int is_set_up;    /* the handshake is over */
  int is_heard;     /* the server has sent something */
  int awaits_input; /* to write on: the server negotiates again */
  unsigned era;
  struct rlk_reason why;
};

/* Errors that other code has left in this thread's queue are not ours. Emptying it when it is empty costs OpenSSL as
 * much as a tenth of a record. */
static void clear_errors(void)
{
  if (f->ERR_peek_last_error())
    f->ERR_clear_error();
}

/* ---- input and output of OpenSSL ---- */

static int bio_read(BIO *bio, char *data, int size)
{
  struct rlk_tls_stream *s = f->BIO_get_data(bio);
  ssize_t n = rlk_link_sockets.read(s->link, data, (size_t)size);
  f->BIO_clear_flags(bio, RETRY_ANY);
  if (n > 0) {
    s->is_heard = 1;
    return (int)n;
  }
  if (n == 0) /* kept from OpenSSL, which would forget the session; replies show themselves whether they are complete */
    s->is_at_end = 1;
  if (n == 0 || n == -EAGAIN)
    f->BIO_set_flags(bio, RETRY_READ);
  else
    s->error = (int)-n;
  return -1;
}

static int bio_write(BIO *bio, const char *data, int size)
{
  struct rlk_tls_stream *s = f->BIO_get_data(bio);
  f->BIO_clear_flags(bio, RETRY_ANY);
  if (rlk_buffer_reserve(&s->out, (size_t)size) != 0) {
    s->error = ENOMEM;
    return -1;
  }
  rlk_buffer_append(&s->out, data, (size_t)size);
  return size;
}

static long bio_control(BIO *bio, int what, long number, void *pointer)
{
  (void)number;
  (void)pointer;
  (void)bio;
  return what == RLK_BIO_CTRL_FLUSH;
}

/* A server gives several; the last one is kept. */
static int keep_session(SSL *ssl, SSL_SESSION *session)
{
  struct rlk_tls_stream *s = f->BIO_get_data(f->SSL_get_rbio(ssl));
  struct rlk_tls_peer *peer = s->link->peer;
  if (s->era != peer->tls->era)
    return 0;
  rlk_tls_forget(peer);
  peer->session = session;
  peer->session_era = s->era;
  return 1;
}

void rlk_tls_forget(struct rlk_tls_peer *peer)
{
  if (peer->session)
    f->SSL_SESSION_free(peer->session);
  peer->session = NULL;
}

/* ---- shared by the connections of a client ---- */

static int is_set(const char *text)
{
  return text && *text;
}

static int refuse(struct rlk_text *why, const char *option, const char *path, const char *reason)
{
  rlk_text_format(why, RLK_NAMED("%s") " is \"", option);
  rlk_text_clean(why, path);
  rlk_text_format(why, "\": %s", reason);
  return REDLOCK_INVALID;
}

static int refuse_errno(struct rlk_text *why, const char *option, const char *path, int error)
{
  char words[RLK_WHY_SIZE];
  return refuse(why, option, path, rlk_error_words(error, words));
}

static int refuse_openssl(struct rlk_text *why, const char *option, const char *path)
{
  const char *reason = f->ERR_reason_error_string(f->ERR_peek_last_error());
  return refuse(why, option, path, reason ? reason : "OpenSSL cannot use it");
}

/* OpenSSL says of a file only that it did not work. */
static int check_file(const char *option, const char *path, struct rlk_text *why)
{
  FILE *file = fopen(path, "rbe");
  int error = file ? 0 : errno, is_empty = file && fgetc(file) == EOF;
  if (is_empty && ferror(file))
    error = errno;
  if (file)
    fclose(file);
  if (is_empty && !error)
    return refuse(why, option, path, "the file is empty");
  return error ? refuse_errno(why, option, path, error) : REDLOCK_OK;
}

/* Certificates are found there by the hash of their subject, as `openssl rehash` names them. */
static int has_hash(const char *name)
{
  return strspn(name, "0123456789abcdef") == 8 && name[8] == '.';
}

static int check_folder(const char *path, struct rlk_text *why)
{
  DIR *folder = opendir(path);
  struct dirent *entry;
  int found = 0;
  if (!folder)
    return refuse_errno(why, "tls_ca_path", path, errno);
  while (!found && (entry = readdir(folder)))
    found = has_hash(entry->d_name);
  closedir(folder);
  return found ? REDLOCK_OK
               : refuse(why, "tls_ca_path", path, "no certificate there has a name that `openssl rehash` gives");
}

/* Authorities in a file or in a folder; the other one is NULL. */
static int trust_in(struct rlk_tls *t, const char *file, const char *folder, struct rlk_text *why)
{
  const char *option = file ? "tls_ca_file" : "tls_ca_path";
  int status = file ? check_file(option, file, why) : check_folder(folder, why);
  if (status == REDLOCK_OK && f->SSL_CTX_load_verify_locations(t->ctx, file, folder) != 1)
    status = refuse_openssl(why, option, file ? file : folder);
  return status;
}

static int trust(struct rlk_tls *t, struct rlk_text *why)
{
  const struct rlk_tls_settings *s = &t->settings;
  int status = REDLOCK_OK;
  f->SSL_CTX_set_verify(t->ctx, s->is_verified ? RLK_SSL_VERIFY_PEER : 0, NULL);
  if (is_set(s->ca_file))
    status = trust_in(t, s->ca_file, NULL, why);
  if (status == REDLOCK_OK && is_set(s->ca_path))
    status = trust_in(t, NULL, s->ca_path, why);
  if (!is_set(s->ca_file) && !is_set(s->ca_path))
    f->SSL_CTX_set_default_verify_paths(t->ctx);
  return status;
}

/* There is no user to ask for one. */
static int no_passphrase(char *out, int size, int is_writing, void *was_wanted)
{
  (void)out;
  (void)size;
  (void)is_writing;
  *(int *)was_wanted = 1;
  return 0;
}

static int show(struct rlk_tls *t, struct rlk_text *why)
{
  const struct rlk_tls_settings *s = &t->settings;
  int status;
  if (!is_set(s->cert_file) && !is_set(s->key_file))
    return REDLOCK_OK;
  if (!is_set(s->cert_file) || !is_set(s->key_file))
    return rlk_refuse(why,
                      RLK_NAMED("tls_cert_file") " and " RLK_NAMED("tls_key_file") " are set together or not at all");
  status = check_file("tls_cert_file", s->cert_file, why);
  if (status == REDLOCK_OK)
    status = check_file("tls_key_file", s->key_file, why);
  if (status != REDLOCK_OK)
    return status;
  if (f->SSL_CTX_use_certificate_chain_file(t->ctx, s->cert_file) != 1)
    return refuse_openssl(why, "tls_cert_file", s->cert_file);
  f->ERR_clear_error();
  if (f->SSL_CTX_use_PrivateKey_file(t->ctx, s->key_file, RLK_SSL_FILETYPE_PEM) == 1 &&
      f->SSL_CTX_check_private_key(t->ctx) == 1)
    return REDLOCK_OK;
  return t->is_locked ? refuse(why, "tls_key_file", s->key_file, "keys with a passphrase are not supported")
                      : refuse_openssl(why, "tls_key_file", s->key_file);
}

static int make_method(struct rlk_tls *t)
{
  t->method = f->BIO_meth_new(RLK_BIO_TYPE_SOURCE_SINK, "libredlock");
  if (!t->method)
    return REDLOCK_NO_MEMORY;
  f->BIO_meth_set_read(t->method, bio_read);
  f->BIO_meth_set_write(t->method, bio_write);
  f->BIO_meth_set_ctrl(t->method, bio_control);
  return REDLOCK_OK;
}

static int make_context(struct rlk_tls *t)
{
  t->ctx = f->SSL_CTX_new(f->TLS_client_method());
  if (!t->ctx)
    return REDLOCK_NO_MEMORY;
  f->SSL_CTX_ctrl(t->ctx, RLK_SSL_CTRL_SET_MIN_PROTO_VERSION, RLK_TLS1_2_VERSION, NULL);
  f->SSL_CTX_ctrl(t->ctx, RLK_SSL_CTRL_MODE, MODE, NULL);
  f->SSL_CTX_ctrl(t->ctx, RLK_SSL_CTRL_SET_READ_AHEAD, 1, NULL);
  f->SSL_CTX_ctrl(t->ctx, RLK_SSL_CTRL_SET_SESS_CACHE_MODE, CACHE, NULL);
  f->SSL_CTX_sess_set_new_cb(t->ctx, keep_session);
  f->SSL_CTX_set_default_passwd_cb(t->ctx, no_passphrase);
  f->SSL_CTX_set_default_passwd_cb_userdata(t->ctx, &t->is_locked);
  return REDLOCK_OK;
}

/* Before they are read: a change meanwhile is noticed the next time. */
static void stamp_files(const struct rlk_tls_settings *s, struct stamp *stamps)
{
  const char *const paths[FILES] = {
      [CA_FILE] = s->ca_file, [CA_PATH] = s->ca_path, [CERT_FILE] = s->cert_file, [KEY_FILE] = s->key_file};
  memset(stamps, 0, FILES * sizeof *stamps);
  for (int i = 0; i < FILES; i++) {
    struct stat about;
    if (!is_set(paths[i]) || stat(paths[i], &about) != 0)
      continue;
    stamps[i] = (struct stamp){.changed_ns = (int64_t)about.MTIME.tv_sec * 1000000000 + about.MTIME.tv_nsec,
                               .inode = (int64_t)about.st_ino,
                               .size = (int64_t)about.st_size};
  }
}

/* A context of the files as they are now; connections made with the former one keep it. */
static int read_files(struct rlk_tls *t, struct rlk_text *why)
{
  SSL_CTX *before = t->ctx, *unwanted;
  int status;
  t->is_locked = 0;
  f->ERR_clear_error();
  status = make_context(t);
  if (status == REDLOCK_OK)
    status = trust(t, why);
  if (status == REDLOCK_OK)
    status = show(t, why);
  f->ERR_clear_error(); /* OpenSSL calls of the host program are not ours */
  unwanted = status == REDLOCK_OK ? before : t->ctx;
  if (status != REDLOCK_OK)
    t->ctx = before;
  if (unwanted)
    f->SSL_CTX_free(unwanted);
  t->era += status == REDLOCK_OK;
  return status;
}

int rlk_tls_new(struct rlk_tls **out, const struct rlk_tls_settings *settings, struct rlk_text *why)
{
  int status;
  struct rlk_tls *t;
  if (!rlk_openssl_load(why))
    return REDLOCK_INVALID;
  t = calloc(1, sizeof *t);
  if (!t)
    return REDLOCK_NO_MEMORY;
  t->settings = *settings;
  stamp_files(settings, t->stamps);
  status = make_method(t);
  if (status == REDLOCK_OK)
    status = read_files(t, why);
  if (status == REDLOCK_OK)
    *out = t;
  else
    rlk_tls_free(t);
  return status;
}

int rlk_tls_refresh(struct rlk_tls *t, struct rlk_text *why)
{
  struct stamp now[FILES];
  stamp_files(&t->settings, now);
  if (memcmp(now, t->stamps, sizeof now) == 0)
    return REDLOCK_OK;
  memcpy(t->stamps, now, sizeof now);
  return read_files(t, why);
}

static int64_t expires_s(const X509 *certificate)
{
  int days, seconds;
  if (!certificate || f->ASN1_TIME_diff(&days, &seconds, NULL, f->X509_get0_notAfter(certificate)) != 1)
    return 0;
  return (int64_t)time(NULL) + (int64_t)days * 86400 + seconds;
}

int64_t rlk_tls_expires_s(const struct rlk_tls *t)
{
  return expires_s(f->SSL_CTX_get0_certificate(t->ctx));
}

void rlk_tls_free(struct rlk_tls *t)
{
  if (!t)
    return;
  if (t->ctx)
    f->SSL_CTX_free(t->ctx);
  if (t->method)
    f->BIO_meth_free(t->method);
  free(t);
}

/* ---- a connection ---- */

static void stream_free(struct rlk_link *link)
{
  struct rlk_tls_stream *s = link->stream;
  if (!s)
    return;
  link->stream = NULL;
  if (s->ssl) {
    f->SSL_set_shutdown(s->ssl, SHUTDOWN);
    f->SSL_free(s->ssl);
  }
  rlk_buffer_free(&s->out);
  free(s);
}

/* An address is in the certificate as one, and is no name to ask for. */
static int expect_name(struct rlk_tls_stream *s, const char *name)
{
  X509_VERIFY_PARAM *expected = f->SSL_get0_param(s->ssl);
  unsigned char address[16];
  if (inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1)
    return f->X509_VERIFY_PARAM_set1_ip_asc(expected, name) == 1;
  f->X509_VERIFY_PARAM_set_hostflags(expected, RLK_X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return f->X509_VERIFY_PARAM_set1_host(expected, name, 0) == 1 &&
         f->SSL_ctrl(s->ssl, RLK_SSL_CTRL_SET_TLSEXT_HOSTNAME, RLK_TLSEXT_NAMETYPE_host_name,
                     (void *)(uintptr_t)name) == 1;
}

static int begin(struct rlk_tls_stream *s, const struct rlk_tls_peer *peer)
{
  BIO *bio;
  clear_errors();
  s->ssl = f->SSL_new(peer->tls->ctx);
  if (!s->ssl)
    return -ENOMEM;
  bio = f->BIO_new(peer->tls->method);
  if (!bio)
    return -ENOMEM;
  s->era = peer->tls->era;
  f->BIO_set_data(bio, s);
  f->BIO_set_init(bio, 1);
  f->SSL_set_bio(s->ssl, bio, bio);
  f->SSL_set_connect_state(s->ssl);
  if (!expect_name(s, peer->name))
    return -ENOMEM;
  if (peer->session && peer->session_era == s->era) /* else the trusted authorities may have changed */
    f->SSL_set_session(s->ssl, peer->session);
  return 0;
}

/* Passes OpenSSL's output to the socket: 0, -EAGAIN when a rest stays, or -errno. */
static int send_out(struct rlk_tls_stream *s)
{
  while (rlk_buffer_size(&s->out) > 0) {
    ssize_t n = rlk_link_sockets.write(s->link, s->out.data + s->out.start, rlk_buffer_size(&s->out));
    if (n == -EAGAIN)
      rlk_link_sockets.want_write(s->link, 1);
    if (n < 0)
      return (int)n;
    rlk_buffer_consume(&s->out, (size_t)n);
  }
  return 0;
}

enum rlk_why rlk_tls_because(struct rlk_reason *why, const struct rlk_tls_failure *failed)
{
  switch (failed->verdict) {
  case 0: break;
  case RLK_X509_V_ERR_HOSTNAME_MISMATCH:
  case RLK_X509_V_ERR_IP_ADDRESS_MISMATCH: return rlk_because(why, RLK_WHY_TLS_NAME, failed->name);
  case RLK_X509_V_ERR_CERT_HAS_EXPIRED: return rlk_because(why, RLK_WHY_TLS_EXPIRED, NULL);
  case RLK_X509_V_ERR_CERT_NOT_YET_VALID: return rlk_because(why, RLK_WHY_TLS_NOT_YET, NULL);
  default: return rlk_because(why, RLK_WHY_TLS_UNTRUSTED, failed->verdict_words);
  }
  if (failed->is_at_end)
    return rlk_because(why, RLK_WHY_TLS_CLOSED, NULL);
  if (strstr(failed->words, "certificate required"))
    return rlk_because(why, RLK_WHY_TLS_WANTS_CERT, NULL);
  if (strstr(failed->words, " alert "))
    return rlk_because(why, RLK_WHY_TLS_ALERT, failed->words);
  if (!failed->is_set_up && (strstr(failed->words, "wrong version number") || strstr(failed->words, "packet length")))
    return rlk_because(why, RLK_WHY_NO_TLS, NULL);
  return rlk_because(why, RLK_WHY_TLS, failed->words);
}

static void explain(struct rlk_tls_stream *s)
{
  const char *words = f->ERR_reason_error_string(f->ERR_peek_last_error());
  char name[65];
  struct rlk_text text = rlk_text_in(name, sizeof name);
  struct rlk_tls_failure failed = {
      .words = words ? words : "no reason given", .name = name, .is_at_end = s->is_at_end, .is_set_up = s->is_set_up};
  if (strstr(failed.words, "verify"))
    failed.verdict = f->SSL_get_verify_result(s->ssl);
  failed.verdict_words = failed.verdict ? f->X509_verify_cert_error_string(failed.verdict) : NULL;
  rlk_text_add(&text, s->link->peer->name);
  rlk_tls_because(&s->why, &failed);
}

/* The result of a failed call of OpenSSL: -EAGAIN, 0 for the end, or -errno. */
static int failed(struct rlk_tls_stream *s, int result)
{
  int kind = f->SSL_get_error(s->ssl, result);
  if (kind == RLK_SSL_ERROR_WANT_READ && !s->is_at_end)
    return -EAGAIN;
  if (s->error)
    return -s->error;
  if (s->is_set_up && (kind == RLK_SSL_ERROR_ZERO_RETURN || kind == RLK_SSL_ERROR_WANT_READ))
    return 0;
  if (!s->why.why)
    explain(s);
  clear_errors();
  return -EPROTO;
}

/* A resumed session may have no chain: the known one stays. */
static void note_expiry(struct rlk_tls_stream *s)
{
  const struct stack_st_X509 *chain = f->SSL_get_peer_cert_chain(s->ssl);
  int64_t at_s = chain ? expires_s(f->OPENSSL_sk_value((const OPENSSL_STACK *)chain, 0)) : 0;
  if (at_s)
    s->link->peer->expires_s = at_s;
}

static int shake_hands(struct rlk_tls_stream *s)
{
  int result, status, sent;
  clear_errors();
  result = f->SSL_do_handshake(s->ssl);
  status = result == 1 ? 0 : failed(s, result);
  if (result == 1) {
    s->is_set_up = 1;
    note_expiry(s);
  } else if (status == 0) {
    status = -ECONNRESET;
  }
  sent = send_out(s);
  if (sent == 0)
    rlk_link_sockets.want_write(s->link, 0);
  else if (sent != -EAGAIN && status == -EAGAIN)
    status = sent;
  return status == -EAGAIN ? -EINPROGRESS : status;
}

static int tls_open(struct rlk_link *link, const struct rlk_address *address)
{
  struct rlk_tls_stream *s = calloc(1, sizeof *s);
  int status;
  if (!s)
    return -ENOMEM;
  s->link = link;
  link->stream = s;
  status = rlk_link_sockets.open(link, address);
  if (status != -EINPROGRESS)
    stream_free(link);
  return status;
}

static int tls_finish(struct rlk_link *link)
{
  struct rlk_tls_stream *s = link->stream;
  if (!s->ssl) {
    int status = rlk_link_sockets.finish(link);
    if (status == 0)
      status = begin(s, link->peer);
    if (status != 0)
      return status;
  }
  return shake_hands(s);
}

/* Bytes that OpenSSL has accepted count as written: they cannot be taken back. A server of TLS 1.2 may renegotiate:
 * meanwhile SSL_write takes replies for a fault, but SSL_read does not. */
static ssize_t tls_write(struct rlk_link *link, const char *data, size_t size)
{
  struct rlk_tls_stream *s = link->stream;
  int n, status = send_out(s);
  s->awaits_input = f->SSL_renegotiate_pending(s->ssl);
  if (status != 0 || s->awaits_input)
    return status ? status : -EAGAIN;
  if (rlk_buffer_reserve(&s->out, RECORD_SIZE + RECORD_OVERHEAD) != 0)
    return -ENOMEM;
  clear_errors();
  n = f->SSL_write(s->ssl, data, (int)(size < RECORD_SIZE ? size : RECORD_SIZE));
  if (n <= 0) {
    status = failed(s, n);
    return status ? status : -EPIPE;
  }
  status = send_out(s);
  return status == 0 || status == -EAGAIN ? n : status;
}

/* Is there more to do than the events report? */
static int has_more(const struct rlk_tls_stream *s)
{
  return f->SSL_has_pending(s->ssl) || f->SSL_renegotiate_pending(s->ssl);
}

static void go_on_writing(struct rlk_link *link)
{
  if (link->stream->awaits_input)
    rlk_link_sockets.want_write(link, 1);
  link->stream->awaits_input = 0;
}

static ssize_t tls_read(struct rlk_link *link, char *data, size_t size)
{
  struct rlk_tls_stream *s = link->stream;
  size_t got = 0;
  int n, status;
  clear_errors();
  do {
    n = f->SSL_read(s->ssl, data + got, (int)(size - got));
    got += n > 0 ? (size_t)n : 0;
  } while (n > 0 && got < size && f->SSL_has_pending(s->ssl));
  status = n > 0 ? 0 : failed(s, n);
  /* the end may have come with the last bytes */
  link->pending = got > 0 && (n > 0 ? has_more(s) : status != -EAGAIN);
  if (rlk_buffer_size(&s->out) > 0) /* an alert, or new keys */
    send_out(s);
  go_on_writing(link);
  return got > 0 ? (ssize_t)got : status;
}

static void tls_want_write(struct rlk_link *link, int on)
{
  struct rlk_tls_stream *s = link->stream;
  on = on && !(s && s->awaits_input);
  if (on || !s || send_out(s) == 0)
    rlk_link_sockets.want_write(link, on);
}

static void tls_close(struct rlk_link *link)
{
  rlk_link_sockets.close(link);
  stream_free(link);
}

static void tls_abandon(struct rlk_link *link)
{
  rlk_link_sockets.abandon(link);
  stream_free(link);
}

/* A server that refuses sends a message and closes; a client that writes meanwhile sees the end first. */
static void look_for_alert(struct rlk_tls_stream *s)
{
  char byte;
  s->error = 0;
  clear_errors();
  if (f->SSL_get_error(s->ssl, f->SSL_read(s->ssl, &byte, 1)) == RLK_SSL_ERROR_SSL)
    explain(s);
  clear_errors();
}

enum rlk_why rlk_tls_silence(struct rlk_reason *why, int is_heard)
{
  return rlk_because(why, is_heard ? RLK_WHY_TLS_SILENT : RLK_WHY_MAY_BE_PLAIN, NULL);
}

static enum rlk_why tls_why(const struct rlk_link *link, int error, struct rlk_reason *why)
{
  struct rlk_tls_stream *s = link->stream;
  int is_broken = error == ECONNRESET || error == EPIPE;
  if (!s || !s->ssl || (error == 0 && s->is_set_up))
    return RLK_WHY_NONE;
  if (error == 0)
    return rlk_tls_silence(why, s->is_heard);
  if (is_broken && !s->why.why)
    look_for_alert(s);
  if (is_broken && !s->why.why && !s->is_set_up)
    return rlk_because(why, RLK_WHY_TLS_CLOSED, NULL);
  return s->why.why ? rlk_because_of(why, s->why.why, s->why.words) : RLK_WHY_NONE;
}

static const char *tls_security(const struct rlk_link *link)
{
  const struct rlk_tls_stream *s = link->stream;
  return s && s->ssl && s->is_set_up ? f->SSL_get_version(s->ssl) : NULL;
}

const struct rlk_link_ops rlk_link_tls = {tls_open,  tls_finish,  tls_write, tls_read,     tls_want_write,
                                          tls_close, tls_abandon, tls_why,   tls_security, rlk_link_is_local};
