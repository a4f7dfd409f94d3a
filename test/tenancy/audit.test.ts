// The audit log after a day of changes: every one of them is in it, nothing secret is, and the chain holds.

import { expect, test } from 'bun:test'
import { openDatabase } from '../../src/store/open-database.ts'
import { verifyAudit } from '../../src/tenancy/audit.ts'
import { startTenancy } from './tenancy.ts'

test('G1, G2: every change is in the audit log with actor and object, and the chain verifies', async () => {
  await using tenancy = await startTenancy()
  const { api, must, gateway } = tenancy
  const earlier = (await must('GET', '/api/audit')).data.length as number
  const { workspaceId, projectId, keyId } = await tenancy.tenant({ credit: '3' })
  const workspace = `/api/workspaces/${workspaceId}`
  await must('PATCH', workspace, { name: 'renamed', shares_routes: true })
  await must('PUT', `${workspace}/limits`, { requests_per_minute: 60 })
  await must('POST', `${workspace}/corrections`, { amount: '1', direction: 'take', reason: 'two were meant' })
  await must('PATCH', `/api/projects/${projectId}`, { models: ['acme/*'] })
  await must('PUT', `/api/projects/${projectId}/limits`, { spend_per_day: '5' })
  await must('PUT', `/api/keys/${keyId}/limits`, { concurrent_requests: 2 })
  await must('PUT', `${workspace}/credentials/groq`, { api_key: 'gsk-canary-0123456789' })
  await must('POST', `/api/keys/${keyId}/rotate`, { overlap_seconds: 60 })
  await must('POST', `/api/keys/${keyId}/revoke`)
  await api('DELETE', `${workspace}/credentials/groq`)
  // Refused calls change nothing and are not recorded.
  await api('PATCH', workspace, { balance: '5' })
  await api('POST', '/api/keys/key_x/revoke', {})

  const { text, body } = await api('GET', '/api/audit?limit=200')
  const entries = (body.data as { action: string; object: string; actor: string; request_id: string | null }[])
    .slice(0, body.data.length - earlier)
    .reverse()
  expect(entries.map(({ action, object }) => [action, object])).toEqual([
    ['workspace.create', workspaceId],
    ['wallet.topup', workspaceId],
    ['project.create', projectId],
    ['key.create', keyId],
    ['workspace.update', workspaceId],
    ['limits.put', workspaceId],
    ['wallet.correct', workspaceId],
    ['project.update', projectId],
    ['limits.put', projectId],
    ['limits.put', keyId],
    ['credential.put', workspaceId],
    ['key.rotate', keyId],
    ['key.revoke', keyId],
    ['credential.delete', workspaceId],
  ])
  expect(entries.filter(({ actor, request_id }) => actor !== 'management token' || !request_id)).toEqual([])
  expect(text).not.toContain('canary')
  expect(text).not.toContain('sk-tg-')

  await gateway.app.stop()
  const database = await openDatabase({ url: undefined, dataFolder: gateway.dataFolder })
  const { findings, rows } = await verifyAudit(database)
  expect([findings, rows]).toEqual([[], entries.length + earlier])
  const rewrite = database.transaction((sql) => sql`UPDATE audit SET object = 'key_other' WHERE action = 'key.revoke'`)
  expect(await rewrite.catch((error: Error) => error.message)).toContain('append-only')
  await database.close()
})
