// One call of the playground as it goes: the text and the tool calls so far, what came of it, and the way to stop it.

import { useEffect, useRef, useState } from 'preact/hooks'
import { Refusal } from '../parts/call-api.ts'
import { type AskedCall, callModel, type PlaygroundAnswer, type PlaygroundCall } from './playground-call.ts'

export interface ModelCall {
  readonly text: string
  readonly calls: readonly AskedCall[]
  /** undefined = it runs, or was never started. */
  readonly outcome: PlaygroundAnswer | Refusal | undefined
  readonly isRunning: boolean
  send(call: PlaygroundCall): void
  stop(): void
}

export function useModelCall(): ModelCall {
  const [text, setText] = useState('')
  const [calls, setCalls] = useState<readonly AskedCall[]>([])
  const [outcome, setOutcome] = useState<PlaygroundAnswer | Refusal | undefined>(undefined)
  const [isRunning, setRunning] = useState(false)
  const running = useRef<AbortController | undefined>(undefined)
  useEffect(() => () => running.current?.abort(), [])
  const run = async (call: PlaygroundCall) => {
    const own = new AbortController()
    running.current = own
    setText('')
    setCalls([])
    setOutcome(undefined)
    setRunning(true)
    const listener = { onText: (more: string) => setText((before) => before + more), onCalls: setCalls }
    try {
      setOutcome(await callModel(call, listener, own.signal))
    } catch {
      const words = own.signal.aborted ? 'You stopped it.' : 'The connection broke off.'
      setOutcome(new Refusal(0, `${words} What was charged stands under Requests.`, ''))
    }
    setRunning(false)
  }
  return { text, calls, outcome, isRunning, send: (call) => void run(call), stop: () => running.current?.abort() }
}
