// A key for a change that must happen once: the same as long as the form says the same, so that pressing again after a
// lost answer gets the first answer; another as soon as the form says something else.

import { useRef } from 'preact/hooks'

/** `content` is everything that the form would send. */
export function useIdempotencyKey(content: string): string {
  const kept = useRef({ content, key: '' })
  if (kept.current.key === '' || kept.current.content !== content) kept.current = { content, key: createKey() }
  return kept.current.key
}

/** Not randomUUID, which browsers hide on plain http. */
function createKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return `console-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`
}
