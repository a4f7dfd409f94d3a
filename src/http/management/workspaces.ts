// Handlers of workspaces, including the export of everything stored about one and the erasure of personal data. The
// export contains the ledger's transfers; the erasure leaves them alone.

import { operations } from '../../api/operations.ts'
import type { WorkspaceId } from '../../kernel/ids.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Database } from '../../store/database.ts'
import { forgetRequests } from '../../telemetry/retention.ts'
import { appendAudit, listAuditOf } from '../../tenancy/audit.ts'
import type { Authenticator } from '../../tenancy/authenticate.ts'
import { listKeys } from '../../tenancy/keys.ts'
import type { Page, PageQuery } from '../../tenancy/management.ts'
import {
  createWorkspace,
  eraseWorkspace,
  getWorkspace,
  listProjects,
  listWorkspaces,
  updateWorkspace,
  type Workspace,
} from '../../tenancy/workspaces.ts'
import {
  auditAnswer,
  credentialAnswer,
  everyPage,
  keyAnswer,
  pageAnswer,
  pageOf,
  projectAnswer,
  transferAnswer,
  walletAnswer,
  workspaceAnswer,
} from './answers.ts'
import type { Credentials } from './providers.ts'
import type { RequestLog } from './requests.ts'
import { implement, type Route } from './route.ts'

export interface WorkspaceDependencies {
  readonly database: Database
  readonly ledger: Pick<Ledger, 'wallet' | 'transfers'>
  readonly credentials: Pick<Credentials, 'list' | 'forget'>
  readonly requests: Pick<RequestLog, 'list'>
  readonly invalidate: Authenticator['invalidate']
}

export function workspaceRoutes(deps: WorkspaceDependencies): readonly Route[] {
  const { database, credentials, invalidate } = deps
  return [
    implement(operations.createWorkspace, {
      async write(sql, { body, act }) {
        return workspaceAnswer(await createWorkspace(sql, body, act))
      },
    }),
    implement(operations.listWorkspaces, {
      async run({ query }) {
        return pageAnswer(await listWorkspaces(database.sql, pageOf(query)), workspaceAnswer)
      },
    }),
    implement(operations.getWorkspace, {
      run: async ({ id }) => workspaceAnswer(await getWorkspace(database.sql, id)),
    }),
    implement(operations.updateWorkspace, {
      async write(sql, { id, body: { name, shares_routes: sharesRoutes }, act }) {
        return workspaceAnswer(await updateWorkspace(sql, id, { name, sharesRoutes }, act))
      },
      committed: ({ id }) => invalidate(id),
    }),
    implement(operations.exportWorkspace, {
      async download({ id, act }) {
        const workspace = await getWorkspace(database.sql, id)
        await database.transaction((sql) => appendAudit(sql, { ...act, action: 'workspace.export', object: id }))
        return { type: 'application/x-ndjson', name: `${id}.jsonl`, pieces: exportPieces(deps, workspace, act.at) }
      },
    }),
    implement(operations.eraseWorkspace, {
      // Not a `write`: a million requests are deleted in batches, each of which may stay deleted.
      async run({ id, act }) {
        const erased = await database.transaction((sql) => eraseWorkspace(sql, id, act))
        // Before the long part, so that its keys stop working now.
        invalidate(id)
        credentials.forget(id)
        return { ...erased, requests: await forgetRequests(database, id) }
      },
    }),
  ]
}

async function* exportPieces(
  { database, ledger, credentials, requests }: WorkspaceDependencies,
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

async function transfersOf(ledger: WorkspaceDependencies['ledger'], id: WorkspaceId, page: PageQuery) {
  const { transfers, nextCursor } = await ledger.transfers(id, pageOf(page))
  return { items: transfers, nextCursor }
}

async function* everyItem<Item>(read: (page: PageQuery) => Promise<Page<Item>>): AsyncGenerator<Item> {
  for await (const page of everyPage(read)) yield* page
}

function line(record: string, fields: object): string {
  return `${JSON.stringify({ record, ...fields })}\n`
}
