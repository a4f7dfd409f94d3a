/**
 * Lets everything run that is waiting. To be called between pieces of synchronous work: the embedded engine answers reads on
 * this thread, so several in a row would hold up every running request.
 */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
