// A breath between two pieces of work. The embedded engine answers reads at once and on this thread, so that a page that
// asks several questions in a row would hold up every generation for as long as all of them take.

/** Lets everything run that is waiting to. */
export function breathe(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
