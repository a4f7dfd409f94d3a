// A line of the results, as the API shows it that the batch was created with.

import type { BatchId } from '../kernel/ids.ts'
import type { Batch, LineRow } from '../tenancy/batches.ts'

type Shown = Pick<LineRow, 'line' | 'outcome' | 'requestId' | 'result'>

/** With its line feed. */
export function renderLine({ id, surface }: Pick<Batch, 'id' | 'surface'>, row: Shown): string {
  return `${surface === 'chat' ? openaiLine(id, row) : anthropicLine(row)}\n`
}

const whyNotRun = {
  cancelled: { code: 'batch_cancelled', message: 'This request was not run, because the batch was cancelled.' },
  expired: { code: 'batch_expired', message: 'This request was not run before the completion window was over.' },
} as const

function openaiLine(batchId: BatchId, { line, outcome, requestId, result }: Shown): string {
  const { customId, status, body } = result
  const start = `{"id":"batch_req_${batchId.slice(batchId.indexOf('_') + 1)}_${line}","custom_id":${JSON.stringify(customId)}`
  if (outcome === 'cancelled' || outcome === 'expired')
    return `${start},"response":null,"error":${JSON.stringify(whyNotRun[outcome])}}`
  const response = `{"status_code":${status},"request_id":${JSON.stringify(requestId ?? null)},"body":${body}}`
  return `${start},"response":${response},"error":null}`
}

function anthropicLine({ outcome, result: { customId, body } }: Shown): string {
  const start = `{"custom_id":${JSON.stringify(customId)},"result":{"type":`
  switch (outcome) {
    case 'succeeded':
      return `${start}"succeeded","message":${body}}}`
    case 'errored':
      return `${start}"errored","error":${body}}}`
    case 'cancelled':
      return `${start}"canceled"}}`
    case 'expired':
      return `${start}"expired"}}`
  }
}
