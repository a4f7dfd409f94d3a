// Reads a finished request from the management API.

import { type Gateway, requestRecords } from './gateway.ts'
import { adminHeaders } from './manage.ts'

/** The last of this many requests. */
export async function recordedRequest(gateway: Gateway, count = 1): Promise<Record<string, unknown>> {
  const logged = (await requestRecords(gateway, count)).at(-1)
  const headers = adminHeaders(gateway.dataFolder)
  for (;;) {
    const answer = await fetch(`${gateway.url}/api/requests/${logged?.request_id}`, { headers })
    if (answer.status === 200) return (await answer.json()) as Record<string, unknown>
    // The log is written in batches.
    await Bun.sleep(20)
  }
}
