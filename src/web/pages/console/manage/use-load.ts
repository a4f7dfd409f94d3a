// Asks the gateway for what a page shows, in several calls if need be, and again when it is told to. What is shown stays
// until the new answer is there, and an answer that was overtaken by a later question is dropped.

import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { Refusal } from '../parts/call-api.ts'

export interface Loaded<Value> {
  /** undefined = not there yet. */
  readonly value: Value | undefined
  readonly refusal: Refusal | undefined
  again(): void
}

interface State<Value> {
  readonly subject: string
  readonly value?: Value
  readonly refusal?: Refusal
}

/** `subject` names what is asked for: another one starts anew. */
export function useLoad<Value>(subject: string, load: () => Promise<Value | Refusal>): Loaded<Value> {
  const [state, setState] = useState<State<Value>>({ subject })
  const turns = useRef(0)
  const ask = useRef(load)
  ask.current = load
  const again = useCallback(() => {
    const turn = ++turns.current
    const run = async () => {
      const answer = await ask.current()
      if (turn !== turns.current) return
      setState((before) => {
        if (!(answer instanceof Refusal)) return { subject, value: answer }
        return { ...(before.subject === subject ? before : {}), subject, refusal: answer }
      })
    }
    void run()
  }, [subject])
  useEffect(() => {
    again()
    return () => {
      turns.current++
    }
  }, [again])
  const shown: State<Value> = state.subject === subject ? state : { subject }
  return { value: shown.value, refusal: shown.refusal, again }
}
