/** @jsxImportSource preact */
// A signal lamp with its word. The shape differs with the state as well as the colour, and the word always stands there.

import type { ShownStanding } from '../../catalog/standing.ts'

const shapes = {
  go: <circle cx="6" cy="6" r="4.5" />,
  caution: <path d="M6 1 11.5 10.5H.5z" />,
  stop: <path d="M1.5 1.5h9v9h-9z" />,
  off: <circle class="hollow" cx="6" cy="6" r="4" />,
} as const

export function Lamp({ signal, word, detail }: ShownStanding) {
  return (
    <span class={`lamp ${signal}`} title={detail === '' ? undefined : detail}>
      <svg viewBox="0 0 12 12" width="10" height="10" aria-hidden="true" focusable="false">
        {shapes[signal]}
      </svg>
      {word}
    </span>
  )
}
