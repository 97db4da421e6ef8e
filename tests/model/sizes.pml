/* Included by the models: how many nodes and clients there are. */
#ifndef EACH_NODE
#ifndef NODES
#define NODES 3
#endif
#ifndef QUORUM
#define QUORUM (NODES / 2 + 1)
#endif

#define EACH_NODE(i) i : 0 .. NODES - 1
#define EACH_CLIENT(i) i : 0 .. CLIENTS - 1
#endif
