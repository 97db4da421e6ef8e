/* Selects the system calls of the core: those of Linux, or those of BSD and macOS. A build with RLK_KQUEUE uses the
 * latter on Linux too, so that they can be tested there. */
#ifndef RLK_SYSTEM_H
#define RLK_SYSTEM_H

#if defined(__linux__) && !defined(RLK_KQUEUE)
#define RLK_LINUX 1
#endif

#endif
