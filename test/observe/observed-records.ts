// Finished requests to observe, made by hand.

import type { KeyId, ProjectId, RequestId, WorkspaceId } from '../../src/kernel/ids.ts'
import type { Nano } from '../../src/kernel/money.ts'
import type { Usage } from '../../src/kernel/usage.ts'
import { RequestRecord } from '../../src/telemetry/request-record.ts'
import { tokenCounts } from '../parts/token-counts.ts'

export const usageOf = (inputTokens: number, outputTokens: number): Usage => ({
  ...tokenCounts(inputTokens, outputTokens),
  source: 'reported',
})

/** A streamed chat that acme answered after 240 ms, of which its call took 200, and that ended after 1,250 ms. */
export function answeredRequest(facts: Partial<RequestRecord> = {}): RequestRecord {
  return {
    ...new RequestRecord(
      'req_00000000000000000000000001' as RequestId,
      1_700_000_000_000,
      '/v1/chat/completions',
      'openai-chat',
    ),
    status: 200,
    caller: { keyId: 'key_1' as KeyId, projectId: 'prj_1' as ProjectId, workspaceId: 'ws_1' as WorkspaceId },
    model: 'acme/large',
    attempts: [{ provider: 'acme', upstreamModel: 'acme-large-v1', outcome: 'ok', ms: 200 }],
    lane: 'bytes',
    stream: true,
    usage: usageOf(100, 20),
    charge: 450_000n as Nano,
    firstEventMs: 240,
    totalMs: 1250,
    waitedMs: 200,
    ...facts,
  }
}

/** Without a key that anybody knows. */
export function refusedRequest(facts: Partial<RequestRecord> = {}): RequestRecord {
  return {
    ...new RequestRecord(
      'req_00000000000000000000000002' as RequestId,
      1_700_000_000_000,
      '/v1/messages',
      'anthropic-messages',
    ),
    status: 401,
    code: 'UNAUTHORIZED',
    reason: 'The key is not known.',
    totalMs: 2,
    ...facts,
  }
}
