// Sends a change once, however often the button is pressed, and keeps what was said against it.

import { useRef, useState } from 'preact/hooks'
import { Refusal } from '../parts/call-api.ts'

export interface Submit {
  readonly isBusy: boolean
  readonly refusal: Refusal | undefined
  run<Value>(call: () => Promise<Value | Refusal>, done: (value: Value) => void): void
}

export function useSubmit(): Submit {
  const [isBusy, setBusy] = useState(false)
  const [refusal, setRefusal] = useState<Refusal | undefined>(undefined)
  // Not the state: a second press comes before the page is drawn again.
  const runs = useRef(false)
  return {
    isBusy,
    refusal,
    run(call, done) {
      if (runs.current) return
      runs.current = true
      setBusy(true)
      setRefusal(undefined)
      const finish = async () => {
        const answer = await call()
        runs.current = false
        setBusy(false)
        if (answer instanceof Refusal) setRefusal(answer)
        else done(answer)
      }
      void finish()
    },
  }
}
