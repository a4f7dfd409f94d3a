/** @jsxImportSource preact */
// Whether the page follows the server at this moment.

import type { LiveState } from '../browser/live-entries.ts'
import { Lamp } from '../shell/lamp.tsx'

const standings = {
  waiting: { signal: 'off', word: 'connecting', detail: '' },
  live: { signal: 'go', word: 'live', detail: 'Prices and health on this page follow the gateway.' },
  lost: { signal: 'caution', word: 'not live, retrying', detail: 'What you see may be out of date.' },
} as const

export function LiveLamp({ state }: { readonly state: LiveState }) {
  return (
    <span class="live needs-script" role="status">
      <Lamp {...standings[state]} />
    </span>
  )
}
