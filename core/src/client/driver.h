/* The thread that does the I/O for everybody while others wait. */
#ifndef RLK_DRIVER_H
#define RLK_DRIVER_H

#include "client.h"

/* Waits for input until until_ns without holding the mutex, then handles it. 0, or -EINTR. */
int rlk_client_drive_once(redlock_client *client, int64_t until_ns);
void rlk_client_hand_over(redlock_client *client); /* the thread that has waited longest drives */
/* Blocks until the lock's operation has ended, until_ns, or, if interruptible, a signal. */
int rlk_client_drive(redlock_client *client, redlock_lock *lock, int64_t until_ns, int interruptible);

#endif
