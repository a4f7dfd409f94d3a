/** @jsxImportSource preact */
// Tries a key at its provider and says what came of it. The gateway makes the call, an empty one that costs nothing.

import { useState } from 'preact/hooks'
import { Lamp } from '../../shell/lamp.tsx'
import { useSubmit } from '../manage/use-submit.ts'
import { callApi } from '../parts/call-api.ts'
import { Moment } from '../parts/zone.tsx'

interface KeyVerdict {
  readonly verdict: string
  readonly message: string
  readonly status: number | null
  readonly tested_at: string
}

export interface KeyTestProps {
  readonly provider: string
  /** Of the API. */
  readonly path: string
}

export function KeyTest({ provider, path }: KeyTestProps) {
  const [tested, setTested] = useState<KeyVerdict | undefined>(undefined)
  const submit = useSubmit()
  const test = () => submit.run(() => callApi<KeyVerdict>(path, { method: 'POST', body: {} }), setTested)
  return (
    <>
      <button
        type="button"
        class="button quiet small"
        aria-label={`Test the key for ${provider}`}
        disabled={submit.isBusy}
        onClick={test}
      >
        {submit.isBusy ? 'Asking …' : 'Test'}
      </button>
      <div role="status" class="key-test">
        {tested && !submit.isBusy && !submit.refusal && (
          <>
            <Lamp signal={signals[tested.verdict] ?? 'stop'} word={tested.verdict.replaceAll('_', ' ')} detail="" />
            <small class="row-note">
              {tested.message} {tested.status !== null && `It answered ${tested.status}. `}
              <Moment at={tested.tested_at} />
            </small>
          </>
        )}
        {submit.refusal && !submit.isBusy && <small class="problem">{submit.refusal.message}</small>}
      </div>
    </>
  )
}

const signals: Readonly<Record<string, 'go' | 'caution' | 'stop'>> = {
  ok: 'go',
  throttled: 'caution',
  failing: 'caution',
}
