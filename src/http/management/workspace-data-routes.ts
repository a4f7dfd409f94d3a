// All that is kept of one workspace, as a file; and the end of whatever in it may belong to a person. The money is in the
// one and stays out of the other.

import { z } from 'zod'
import { Failure } from '../../kernel/failure.ts'
import type { WorkspaceId } from '../../kernel/ids.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Database } from '../../store/database.ts'
import { forgetRequests } from '../../telemetry/forget-requests.ts'
import { appendAudit, listAuditOf } from '../../tenancy/audit.ts'
import type { Authenticator } from '../../tenancy/authenticate.ts'
import { eraseWorkspace } from '../../tenancy/erase-workspace.ts'
import { listKeys } from '../../tenancy/keys.ts'
import type { Page, PageQuery } from '../../tenancy/page.ts'
import { listProjects } from '../../tenancy/projects.ts'
import { getWorkspace, type Workspace } from '../../tenancy/workspaces.ts'
import {
  auditAnswer,
  credentialAnswer,
  keyAnswer,
  projectAnswer,
  transferAnswer,
  walletAnswer,
  workspaceAnswer,
} from './answers.ts'
import type { Credentials } from './credential-routes.ts'
import { must } from './fields.ts'
import type { RequestLog } from './request-routes.ts'
import { defineRoute, notFound, type Route } from './route.ts'

interface Dependencies {
  readonly database: Database
  readonly ledger: Pick<Ledger, 'wallet' | 'transfers'>
  readonly credentials: Pick<Credentials, 'list' | 'forget'>
  readonly requests: Pick<RequestLog, 'list'>
  readonly invalidate: Authenticator['invalidate']
}

const pageSize = 200

export function workspaceDataRoutes(deps: Dependencies): readonly Route[] {
  return [exportRoute(deps), eraseRoute(deps)]
}

function exportRoute(deps: Dependencies): Route {
  return defineRoute({
    method: 'GET',
    path: '/api/workspaces/{id}/export',
    kind: 'workspace',
    operation: 'exportWorkspace',
    summary: 'Sends all that is kept of a workspace, one JSON object per line; no secret is in it.',
    status: 200,
    fileTypes: ['application/x-ndjson'],
    async download({ id, act }) {
      const workspace = await getWorkspace(deps.database.sql, id)
      if (workspace === 'not found') return notFound('workspace', id)
      await deps.database.transaction((sql) => appendAudit(sql, { ...act, action: 'workspace.export', object: id }))
      return {
        type: 'application/x-ndjson',
        name: `${id}.jsonl`,
        pieces: exportPieces(deps, workspace, act.at),
      }
    },
  })
}

function eraseRoute({ database, credentials, invalidate }: Dependencies): Route {
  return defineRoute({
    method: 'POST',
    path: '/api/workspaces/{id}/erase',
    kind: 'workspace',
    operation: 'eraseWorkspace',
    summary: 'Ends its keys for good and erases names, provider keys and requests; charges and balance stay.',
    body: z.strictObject({
      confirm: z.literal('erase', must('"erase"')).describe('The word `erase`: it cannot be undone.'),
    }),
    example: { confirm: 'erase' },
    answer: z.object({
      id: z.string(),
      keys: z.int().describe('Keys that were ended and erased.'),
      credentials: z.int(),
      requests: z.int(),
    }),
    status: 200,
    // Not a `write`: a million requests are forgotten in portions, and each may stay forgotten.
    async run({ id, act }) {
      const erased = await database.transaction((sql) => eraseWorkspace(sql, id, act))
      if (erased === 'not found') return notFound('workspace', id)
      if (erased instanceof Failure) return erased
      // Before the long part: nobody calls with its keys any more.
      invalidate(id)
      credentials.forget(id)
      return { ...erased, requests: await forgetRequests(database, id) }
    },
  })
}

async function* exportPieces(
  { database, ledger, credentials, requests }: Dependencies,
  workspace: Workspace,
  now: number,
): AsyncGenerator<string> {
  const { id } = workspace
  const { sql } = database
  yield line('workspace', workspaceAnswer(workspace))
  yield line('wallet', walletAnswer(await ledger.wallet(id)))
  const objects: string[] = [id]
  for await (const project of everyItem((page) => listProjects(sql, id, page))) {
    objects.push(project.id)
    yield line('project', projectAnswer(project))
  }
  for await (const key of everyItem((page) => listKeys(sql, { workspaceId: id, page }))) {
    objects.push(key.id)
    yield line('key', keyAnswer(key, now))
  }
  for (const each of await credentials.list(sql, id)) yield line('credential', credentialAnswer(each))
  for await (const transfer of everyItem((page) => transfersOf(ledger, id, page))) {
    yield line('transfer', transferAnswer(transfer, id))
  }
  for await (const request of everyItem((page) => requests.list({ ...page, workspaceId: id }))) {
    yield line('request', request)
  }
  for (const object of objects) {
    for (const entry of await listAuditOf(sql, object)) yield line('audit', auditAnswer(entry))
  }
}

async function transfersOf(ledger: Dependencies['ledger'], id: WorkspaceId, { limit, cursor }: PageQuery) {
  const { transfers, nextCursor } = await ledger.transfers(id, { limit, ...(cursor !== undefined && { cursor }) })
  return { items: transfers, nextCursor }
}

/** Page by page: a year of requests never stands in memory. */
async function* everyItem<Item>(read: (page: PageQuery) => Promise<Page<Item>>): AsyncGenerator<Item> {
  let cursor: string | undefined
  do {
    const page = await read({ limit: pageSize, ...(cursor !== undefined && { cursor }) })
    yield* page.items
    cursor = page.nextCursor
  } while (cursor !== undefined)
}

function line(record: string, fields: object): string {
  return `${JSON.stringify({ record, ...fields })}\n`
}
