/* The functions of OpenSSL that TLS takes. The library is loaded when the first client with rediss:// is opened: builds
 * need no headers of it, programs without TLS do not have it, and a system's update of it is used. */
#ifndef RLK_OPENSSL_H
#define RLK_OPENSSL_H

#include <stddef.h>

#include "../base/buffer.h"

typedef struct ssl_st SSL;
typedef struct ssl_ctx_st SSL_CTX;
typedef struct ssl_method_st SSL_METHOD;
typedef struct ssl_session_st SSL_SESSION;
typedef struct bio_st BIO;
typedef struct bio_method_st BIO_METHOD;
typedef struct X509_VERIFY_PARAM_st X509_VERIFY_PARAM;
typedef struct x509_store_ctx_st X509_STORE_CTX;
typedef struct x509_st X509;
typedef struct asn1_string_st ASN1_TIME;
typedef struct stack_st OPENSSL_STACK;
struct stack_st_X509;

/* X(result, name, parameters): the same in OpenSSL 1.1 and 3. A unit test compares both lists with its headers. */
#define RLK_OPENSSL(X)                                                                                                 \
  X(const SSL_METHOD *, TLS_client_method, (void))                                                                     \
  X(SSL_CTX *, SSL_CTX_new, (const SSL_METHOD *))                                                                      \
  X(void, SSL_CTX_free, (SSL_CTX *))                                                                                   \
  X(long, SSL_CTX_ctrl, (SSL_CTX *, int, long, void *))                                                                \
  X(int, SSL_CTX_set_default_verify_paths, (SSL_CTX *))                                                                \
  X(int, SSL_CTX_load_verify_locations, (SSL_CTX *, const char *, const char *))                                       \
  X(int, SSL_CTX_use_certificate_chain_file, (SSL_CTX *, const char *))                                                \
  X(int, SSL_CTX_use_PrivateKey_file, (SSL_CTX *, const char *, int))                                                  \
  X(int, SSL_CTX_check_private_key, (const SSL_CTX *))                                                                 \
  X(void, SSL_CTX_set_default_passwd_cb, (SSL_CTX *, int (*)(char *, int, int, void *)))                               \
  X(void, SSL_CTX_set_default_passwd_cb_userdata, (SSL_CTX *, void *))                                                 \
  X(void, SSL_CTX_set_verify, (SSL_CTX *, int, int (*)(int, X509_STORE_CTX *)))                                        \
  X(void, SSL_CTX_sess_set_new_cb, (SSL_CTX *, int (*)(SSL *, SSL_SESSION *)))                                         \
  X(SSL *, SSL_new, (SSL_CTX *))                                                                                       \
  X(void, SSL_free, (SSL *))                                                                                           \
  X(long, SSL_ctrl, (SSL *, int, long, void *))                                                                        \
  X(void, SSL_set_bio, (SSL *, BIO *, BIO *))                                                                          \
  X(BIO *, SSL_get_rbio, (const SSL *))                                                                                \
  X(void, SSL_set_connect_state, (SSL *))                                                                              \
  X(void, SSL_set_shutdown, (SSL *, int))                                                                              \
  X(int, SSL_set_session, (SSL *, SSL_SESSION *))                                                                      \
  X(void, SSL_SESSION_free, (SSL_SESSION *))                                                                           \
  X(X509_VERIFY_PARAM *, SSL_get0_param, (SSL *))                                                                      \
  X(int, SSL_do_handshake, (SSL *))                                                                                    \
  X(int, SSL_read, (SSL *, void *, int))                                                                               \
  X(int, SSL_write, (SSL *, const void *, int))                                                                        \
  X(const char *, SSL_get_version, (const SSL *))                                                                      \
  X(int, SSL_has_pending, (const SSL *))                                                                               \
  X(int, SSL_renegotiate_pending, (const SSL *))                                                                       \
  X(int, SSL_get_error, (const SSL *, int))                                                                            \
  X(long, SSL_get_verify_result, (const SSL *))                                                                        \
  X(struct stack_st_X509 *, SSL_get_peer_cert_chain, (const SSL *))                                                    \
  X(X509 *, SSL_CTX_get0_certificate, (const SSL_CTX *))                                                               \
  X(void *, OPENSSL_sk_value, (const OPENSSL_STACK *, int))                                                            \
  X(const ASN1_TIME *, X509_get0_notAfter, (const X509 *))                                                             \
  X(int, ASN1_TIME_diff, (int *, int *, const ASN1_TIME *, const ASN1_TIME *))                                         \
  X(const char *, X509_verify_cert_error_string, (long))                                                               \
  X(int, X509_VERIFY_PARAM_set1_host, (X509_VERIFY_PARAM *, const char *, size_t))                                     \
  X(int, X509_VERIFY_PARAM_set1_ip_asc, (X509_VERIFY_PARAM *, const char *))                                           \
  X(void, X509_VERIFY_PARAM_set_hostflags, (X509_VERIFY_PARAM *, unsigned int))                                        \
  X(BIO_METHOD *, BIO_meth_new, (int, const char *))                                                                   \
  X(void, BIO_meth_free, (BIO_METHOD *))                                                                               \
  X(int, BIO_meth_set_read, (BIO_METHOD *, int (*)(BIO *, char *, int)))                                               \
  X(int, BIO_meth_set_write, (BIO_METHOD *, int (*)(BIO *, const char *, int)))                                        \
  X(int, BIO_meth_set_ctrl, (BIO_METHOD *, long (*)(BIO *, int, long, void *)))                                        \
  X(BIO *, BIO_new, (const BIO_METHOD *))                                                                              \
  X(void, BIO_set_data, (BIO *, void *))                                                                               \
  X(void *, BIO_get_data, (BIO *))                                                                                     \
  X(void, BIO_set_init, (BIO *, int))                                                                                  \
  X(void, BIO_set_flags, (BIO *, int))                                                                                 \
  X(void, BIO_clear_flags, (BIO *, int))                                                                               \
  X(unsigned long, ERR_peek_last_error, (void))                                                                        \
  X(const char *, ERR_reason_error_string, (unsigned long))                                                            \
  X(void, ERR_clear_error, (void))

/* X(name, value): of its constants. */
#define RLK_OPENSSL_NUMBERS(X)                                                                                         \
  X(SSL_CTRL_MODE, 33)                                                                                                 \
  X(SSL_CTRL_SET_READ_AHEAD, 41)                                                                                       \
  X(SSL_CTRL_SET_SESS_CACHE_MODE, 44)                                                                                  \
  X(SSL_CTRL_SET_TLSEXT_HOSTNAME, 55)                                                                                  \
  X(SSL_CTRL_SET_MIN_PROTO_VERSION, 123)                                                                               \
  X(TLSEXT_NAMETYPE_host_name, 0)                                                                                      \
  X(SSL_MODE_ENABLE_PARTIAL_WRITE, 1)                                                                                  \
  X(SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER, 2)                                                                            \
  X(SSL_SESS_CACHE_CLIENT, 1)                                                                                          \
  X(SSL_SESS_CACHE_NO_INTERNAL, 0x300)                                                                                 \
  X(SSL_SENT_SHUTDOWN, 1)                                                                                              \
  X(SSL_RECEIVED_SHUTDOWN, 2)                                                                                          \
  X(SSL_VERIFY_PEER, 1)                                                                                                \
  X(SSL_FILETYPE_PEM, 1)                                                                                               \
  X(SSL_ERROR_SSL, 1)                                                                                                  \
  X(SSL_ERROR_WANT_READ, 2)                                                                                            \
  X(SSL_ERROR_ZERO_RETURN, 6)                                                                                          \
  X(TLS1_2_VERSION, 0x303)                                                                                             \
  X(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS, 4)                                                                           \
  X(X509_V_ERR_CERT_NOT_YET_VALID, 9)                                                                                  \
  X(X509_V_ERR_CERT_HAS_EXPIRED, 10)                                                                                   \
  X(X509_V_ERR_HOSTNAME_MISMATCH, 62)                                                                                  \
  X(X509_V_ERR_IP_ADDRESS_MISMATCH, 64)                                                                                \
  X(BIO_TYPE_SOURCE_SINK, 0x400)                                                                                       \
  X(BIO_CTRL_FLUSH, 11)                                                                                                \
  X(BIO_FLAGS_READ, 1)                                                                                                 \
  X(BIO_FLAGS_WRITE, 2)                                                                                                \
  X(BIO_FLAGS_IO_SPECIAL, 4)                                                                                           \
  X(BIO_FLAGS_SHOULD_RETRY, 8)

enum {
#define RLK_NUMBER(name, value) RLK_##name = value,
  RLK_OPENSSL_NUMBERS(RLK_NUMBER)
#undef RLK_NUMBER
};

/* Its functions, once it is loaded. */
extern struct rlk_openssl {
#define RLK_FUNCTION(result, name, parameters) result(*name) parameters;
  RLK_OPENSSL(RLK_FUNCTION)
#undef RLK_FUNCTION
} rlk_openssl;

/* 1, or 0 with the reason in why. Never unloaded. Any thread. */
int rlk_openssl_load(struct rlk_text *why);

#endif
