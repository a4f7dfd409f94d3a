// Workspaces and what belongs to one as a whole: its wallet. Money comes in here and nowhere else.

import { z } from 'zod'
import { Failure } from '../../kernel/failure.ts'
import type { WorkspaceId } from '../../kernel/ids.ts'
import { formatUsd } from '../../kernel/money.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Authenticator } from '../../tenancy/authenticate.ts'
import { createWorkspace, getWorkspace, listWorkspaces, updateWorkspace } from '../../tenancy/workspaces.ts'
import {
  topUpSchema,
  transferAnswer,
  transferSchema,
  walletAnswer,
  walletSchema,
  workspaceAnswer,
  workspaceSchema,
} from './answers.ts'
import { amountField, must, nameField } from './fields.ts'
import { type MoveDependencies, moveFailure, noteMove } from './money-move.ts'
import { listAnswer, listSchema, pageOf, pageQuery } from './paging.ts'
import { defineRoute, notFound, type Route } from './route.ts'

export interface WorkspaceDependencies extends MoveDependencies {
  readonly ledger: Pick<Ledger, 'fund' | 'wallet' | 'transfers'>
  readonly invalidate: Authenticator['invalidate']
}

export function workspaceRoutes(deps: WorkspaceDependencies): readonly Route[] {
  const { database } = deps
  return [
    defineRoute({
      method: 'POST',
      path: '/api/workspaces',
      operation: 'createWorkspace',
      summary: 'Makes a workspace: one wallet, projects, credentials.',
      body: z.strictObject({ name: nameField }),
      example: { name: 'acme' },
      answer: workspaceSchema,
      status: 201,
      async write(sql, { body, act }) {
        const workspace = await createWorkspace(sql, body, act)
        return workspace instanceof Failure ? workspace : workspaceAnswer(workspace)
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/workspaces',
      operation: 'listWorkspaces',
      summary: 'Lists workspaces, oldest first.',
      query: pageQuery,
      answer: listSchema(workspaceSchema),
      status: 200,
      async run({ query }) {
        const { items, nextCursor } = await listWorkspaces(database.sql, pageOf(query))
        return listAnswer(items.map(workspaceAnswer), nextCursor)
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/workspaces/{id}',
      kind: 'workspace',
      operation: 'getWorkspace',
      summary: 'Reads one workspace.',
      answer: workspaceSchema,
      status: 200,
      async run({ id }) {
        const workspace = await getWorkspace(database.sql, id)
        return workspace === 'not found' ? notFound('workspace', id) : workspaceAnswer(workspace)
      },
    }),
    updateWorkspaceRoute(deps),
    ...walletRoutes(deps),
  ]
}

function updateWorkspaceRoute({ invalidate }: WorkspaceDependencies): Route {
  return defineRoute({
    method: 'PATCH',
    path: '/api/workspaces/{id}',
    kind: 'workspace',
    operation: 'updateWorkspace',
    summary: 'Changes the name, or whether shared routes follow its own; what is left out stays.',
    body: z.strictObject({
      name: nameField.optional(),
      shares_routes: z
        .boolean(must('true or false'))
        .optional()
        .describe("Whether routes on the operator's credentials, at the usual price, may follow those on its own."),
    }),
    example: { shares_routes: true },
    answer: workspaceSchema,
    status: 200,
    async write(sql, { id, body: { name, shares_routes: sharesRoutes }, act }) {
      const workspace = await updateWorkspace(sql, id, { name, sharesRoutes }, act)
      if (workspace === 'not found') return notFound('workspace', id)
      return workspace instanceof Failure ? workspace : workspaceAnswer(workspace)
    },
    committed: ({ id }) => invalidate(id),
  })
}

function walletRoutes(deps: WorkspaceDependencies): readonly Route[] {
  const { database, ledger } = deps
  const isMissing = async (id: WorkspaceId) => (await getWorkspace(database.sql, id)) === 'not found'
  return [
    defineRoute({
      method: 'GET',
      path: '/api/workspaces/{id}/wallet',
      kind: 'workspace',
      operation: 'getWallet',
      summary: 'Reads the wallet of a workspace.',
      answer: walletSchema,
      status: 200,
      async run({ id }) {
        if (await isMissing(id)) return notFound('workspace', id)
        return walletAnswer(await ledger.wallet(id))
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/workspaces/{id}/topups',
      kind: 'workspace',
      operation: 'topUp',
      summary: 'Puts money into the wallet; effective for the next call.',
      body: z.strictObject({
        amount: amountField.describe('More than 0 and at most 1000000.'),
        reference: z
          .string(must('a text of at most 200 characters'))
          .max(200, must('a text of at most 200 characters'))
          .nullish()
          .describe('Free text for people, not a key: two top-ups with one reference are two.'),
      }),
      example: { amount: '25.00', reference: 'invoice 17' },
      answer: topUpSchema,
      status: 201,
      async run({ id, body: { amount, reference }, act, idempotencyKey }) {
        if (await isMissing(id)) return notFound('workspace', id)
        const outcome = await ledger.fund({
          workspaceId: id,
          amount,
          kind: 'topup',
          ...(reference == null ? {} : { reference }),
          ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
        })
        if (outcome.kind !== 'funded') return moveFailure(outcome, amount, { done: 'credited', does: 'credits' })
        const details = { amount: formatUsd(outcome.transfer.amount) }
        await noteMove(deps, { ...act, action: 'wallet.topup', object: id, details }, outcome)
        return { id: outcome.transfer.id, amount: formatUsd(amount), balance: formatUsd(outcome.posted) }
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/workspaces/{id}/transfers',
      kind: 'workspace',
      operation: 'listTransfers',
      summary: 'Lists what came into the wallet and what was paid from it, newest first.',
      query: pageQuery,
      answer: listSchema(transferSchema),
      status: 200,
      async run({ id, query }) {
        if (await isMissing(id)) return notFound('workspace', id)
        const { transfers, nextCursor } = await ledger.transfers(id, pageOf(query))
        return listAnswer(
          transfers.map((transfer) => transferAnswer(transfer, id)),
          nextCursor,
        )
      },
    }),
  ]
}
