#include "sim.h"

static int before(const struct event *a, const struct event *b)
{
  return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void queue_push(struct queue *queue, struct event event)
{
  if (queue->count == queue->capacity) {
    queue->capacity = queue->capacity ? queue->capacity * 2 : 1024;
    queue->heap = heap_realloc(queue->heap, queue->capacity * sizeof *queue->heap);
  }
  event.order = queue->order++;
  size_t at = queue->count++;
  while (at > 0 && before(&event, &queue->heap[(at - 1) / 2])) {
    queue->heap[at] = queue->heap[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  queue->heap[at] = event;
}

int queue_pop(struct queue *queue, struct event *event)
{
  if (!queue->count)
    return 0;
  *event = queue->heap[0];
  struct event last = queue->heap[--queue->count];
  size_t at = 0, child;
  while ((child = 2 * at + 1) < queue->count) {
    if (child + 1 < queue->count && before(&queue->heap[child + 1], &queue->heap[child]))
      child++;
    if (!before(&queue->heap[child], &last))
      break;
    queue->heap[at] = queue->heap[child];
    at = child;
  }
  queue->heap[at] = last;
  return 1;
}
