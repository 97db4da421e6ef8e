/* Which calls the core is made of: those of Linux, or those that BSD and macOS have. A build with RLK_KQUEUE takes the
 * latter on Linux too, so that they can be tested there. */
#ifndef RLK_SYSTEM_H
#define RLK_SYSTEM_H

#if defined(__linux__) && !defined(RLK_KQUEUE)
#define RLK_LINUX 1
#endif

#endif
