// How long a request may take where its route does not say: a stream shows that it lives, a whole answer does not.

import type { Envelope } from '../dialects/canonical/translation.ts'

export function usualTotalMs({ stream }: Pick<Envelope, 'stream'>): number {
  return stream ? 900_000 : 600_000
}
