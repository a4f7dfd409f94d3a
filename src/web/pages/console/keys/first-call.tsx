/** @jsxImportSource preact */
// Waits for the first call with a new key and says when it came. It asks every other second, only while it is on screen.

import { useEffect, useState } from 'preact/hooks'
import { Lamp } from '../../shell/lamp.tsx'
import type { Call } from '../manage/things.ts'
import { callApi, Refusal } from '../parts/call-api.ts'
import type { ListAnswer } from '../parts/use-resource.ts'

const pauseMs = 2_000

export function FirstCall({ keyId }: { readonly keyId: string }) {
  const call = useFirstCall(keyId)
  if (!call) {
    return (
      <p role="status" class="first-call">
        <Lamp signal="off" word="waiting for the first call …" detail="" />
      </p>
    )
  }
  const isGood = call.status < 400 && call.code === null
  return (
    <p role="status" class="first-call">
      <Lamp signal={isGood ? 'go' : 'caution'} word="received" detail="" />{' '}
      <a href={`/console/requests/${call.id}`}>
        {call.model ?? 'a call'}, status {call.status}
        {call.status < 400 && call.code !== null && ` ${call.code}`}
      </a>
      {call.client && <small class="client">from {call.client}</small>}
    </p>
  )
}

function useFirstCall(keyId: string): Call | undefined {
  const [call, setCall] = useState<Call | undefined>(undefined)
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    let isOver = false
    const ask = async () => {
      const answer = await callApi<ListAnswer<Call>>(`/api/requests?key_id=${keyId}&limit=1`)
      const found = answer instanceof Refusal ? undefined : answer.data[0]
      if (found) setCall(found)
      // A refusal is no reason to stop: the call may come while the gateway restarts.
      else if (!isOver) timer = setTimeout(ask, pauseMs)
    }
    void ask()
    return () => {
      isOver = true
      clearTimeout(timer)
    }
  }, [keyId])
  return call
}
