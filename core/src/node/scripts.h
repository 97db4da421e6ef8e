/* The scripts that servers run. */
#ifndef RLK_SCRIPTS_H
#define RLK_SCRIPTS_H

enum rlk_script {
  RLK_SCRIPT_RELEASE,
  RLK_SCRIPT_EXTEND,
  RLK_SCRIPT_JOIN,
  RLK_SCRIPT_HAND_OVER,
  RLK_SCRIPT_LEAVE,
  RLK_SCRIPT_PROOF,
  RLK_SCRIPT_REGISTER,
  RLK_SCRIPT_FENCE,
  RLK_SCRIPT_RAISE,
  RLK_SCRIPT_EXPIRE
};

/* SHA-1 of those that are called by it. */
#define RLK_RELEASE_HASH "e949c6e37d7c2a84cc4c242883e566afe7adc5eb"
#define RLK_EXTEND_HASH "ca415a373b3ba5c110a30e62c094e553b1d61b1b"
#define RLK_JOIN_HASH "bd45f9324e811027571917f2632b8d36391bc94c"
#define RLK_HAND_OVER_HASH "9ea4742bc93a16874a475cecb8ce7cdfc7c63252"
#define RLK_FENCE_HASH "1b716bd48d4d399cfdf03881d62b07a352048271"

const char *rlk_script_text(enum rlk_script script);
const char *rlk_script_hash(enum rlk_script script);

#endif
