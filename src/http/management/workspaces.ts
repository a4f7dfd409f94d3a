// Handlers of workspaces, projects, API keys and limits. A secret is in the answer of the request that created it and nowhere
// else. The export of a workspace contains the ledger's transfers; the erasure of its personal data leaves them alone.

import type { AnswerOf } from '../../api/client.ts'
import { listAnswer } from '../../api/fields.ts'
import { renderLine } from '../../batches/render-line.ts'
import { hasPriceList } from '../../catalog/price-lists.ts'
import { invalidRequest } from '../../kernel/failure.ts'
import type { WorkspaceId } from '../../kernel/ids.ts'
import { matchesModel, type SpendLimit } from '../../kernel/spend-limit.ts'
import { creditOf } from '../../ledger/credit.ts'
import { listPlanPayments, readSubscription } from '../../ledger/plan-payments.ts'
import { setWorkspacePlan } from '../../ledger/plans.ts'
import type { Sql } from '../../store/sql.ts'
import { forgetRequests } from '../../telemetry/retention.ts'
import { appendAudit, listAuditOf } from '../../tenancy/audit.ts'
import { listCredentials } from '../../tenancy/credentials.ts'
import { createGroup, deleteGroup, getGroup, groupIdsOf, listGroups, updateGroup } from '../../tenancy/groups.ts'
import { createKey, getKey, listKeys, revokeKey, rotateKey } from '../../tenancy/keys.ts'
import { limitsConcerning, putLimits, readLimits } from '../../tenancy/limits.ts'
import type { Page, PageQuery } from '../../tenancy/management.ts'
import type { Principal } from '../../tenancy/principal.ts'
import {
  createProject,
  createWorkspace,
  deleteProject,
  eraseWorkspace,
  getProject,
  getWorkspace,
  listProjects,
  listWorkspaces,
  type Project,
  updateProject,
  updateWorkspace,
  type Workspace,
} from '../../tenancy/workspaces.ts'
import {
  auditAnswer,
  credentialAnswer,
  everyPage,
  given,
  groupAnswer,
  keyAnswers,
  limitsAnswer,
  limitsFromBody,
  pageAnswer,
  pageOf,
  projectAnswers,
  transferAnswer,
  walletAnswer,
  workspaceAnswers,
} from './answers.ts'
import { batchAnswer } from './batches.ts'
import { noPriceList } from './catalog.ts'
import type { RouteDependencies } from './dependencies.ts'
import { allowlistsOf, checkNextModels, namesModels } from './next-models.ts'
import { planPaymentAnswer, workspacePlanAnswer } from './plans.ts'
import type { Call, Handlers } from './route.ts'

export function workspaceHandlers(deps: RouteDependencies) {
  const { database, credentials, invalidate } = deps
  return {
    createWorkspace: {
      async write(sql, { body, act }) {
        return await workspaceAnswers.one(sql, await createWorkspace(sql, body, act), act.at)
      },
    },
    async listWorkspaces({ query, act, reach: { principal } }) {
      const only = principal.isOperator ? undefined : principal.grants.map(({ workspaceId }) => workspaceId)
      const { items, nextCursor } = await listWorkspaces(database.sql, pageOf(query), only)
      const shown = await withoutOthersLimits(database.sql, principal, items)
      return await workspaceAnswers.page(database.sql, { items: shown, nextCursor }, act.at)
    },
    async getWorkspace({ id, act, reach: { principal } }) {
      const found = await getWorkspace(database.sql, id)
      const [shown = found] = await withoutOthersLimits(database.sql, principal, [found])
      return await workspaceAnswers.one(database.sql, shown, act.at)
    },
    updateWorkspace: {
      async write(sql, { id, body: { name, shares_routes: sharesRoutes, price_list: priceList }, act }) {
        if (priceList != null && !(await hasPriceList(sql, priceList))) throw noPriceList(priceList)
        const workspace = await updateWorkspace(sql, id, { name, sharesRoutes, priceList }, act)
        return await workspaceAnswers.one(sql, workspace, act.at)
      },
      committed: ({ id }) => invalidate(id),
    },
    exportWorkspace: {
      async download({ id, act }) {
        const workspace = await getWorkspace(database.sql, id)
        await database.transaction((sql) => appendAudit(sql, { ...act, action: 'workspace.export', object: id }))
        return { type: 'application/x-ndjson', name: `${id}.jsonl`, pieces: exportPieces(deps, workspace, act.at) }
      },
    },
    // Not a `write`: a million requests are deleted in batches, each of which may stay deleted.
    async eraseWorkspace({ id, act }) {
      const erased = await database.transaction(async (sql) => {
        const paid = await readSubscription(sql, id)
        if (paid && !paid.isEnding) {
          const message = `This workspace pays for the plan \`${paid.planId}\`. Cancel its subscription first (DELETE /api/workspaces/${id}/subscription).`
          throw invalidRequest(message)
        }
        // An erased workspace gets no further credit.
        await setWorkspacePlan(sql, id, undefined)
        return await eraseWorkspace(sql, id, act)
      })
      // Before the long part, so that its keys stop working now.
      invalidate(id)
      credentials.forget(id)
      return { ...erased, requests: await forgetRequests(database, id) }
    },
  } satisfies Partial<Handlers>
}

/** Members do not see what other people and groups may spend. */
async function withoutOthersLimits<Item extends Workspace | Project>(
  sql: Sql,
  { personId, grants }: Principal,
  items: readonly Item[],
): Promise<readonly Item[]> {
  const isMemberOf = (item: Item) => {
    const place = 'workspaceId' in item ? item.workspaceId : item.id
    return grants.find(({ workspaceId }) => workspaceId === place)?.role === 'member'
  }
  if (!items.some(isMemberOf)) return items
  const whose = { personId, groupIds: personId === undefined ? [] : await groupIdsOf(sql, personId) }
  return items.map((item) => (isMemberOf(item) ? { ...item, limits: limitsConcerning(item.limits, whose) } : item))
}

export function projectHandlers({ database, invalidate, modelsOf, contentRules }: RouteDependencies) {
  return {
    createProject: {
      async write(sql, { id, body: { name, models, aliases, exports_content: exportsContent }, act }) {
        const lists = { models: models ?? undefined, aliases: aliases ?? undefined }
        const input = { workspaceId: id, name, ...lists, exportsContent }
        return await projectAnswers.one(sql, await createProject(sql, input, act), act.at)
      },
    },
    async listProjects({ id, query, act, reach: { principal } }) {
      const { items, nextCursor } = await listProjects(database.sql, id, pageOf(query), query)
      const shown = await withoutOthersLimits(database.sql, principal, items)
      return await projectAnswers.page(database.sql, { items: shown, nextCursor }, act.at)
    },
    async getProject({ id, act, reach: { principal } }) {
      const found = await getProject(database.sql, id)
      const [shown = found] = await withoutOthersLimits(database.sql, principal, [found])
      return await projectAnswers.one(database.sql, shown, act.at)
    },
    updateProject: {
      async write(sql, { id, body: { exports_content: exportsContent, ...lists }, act }) {
        return await projectAnswers.one(sql, await updateProject(sql, id, { ...lists, exportsContent }, act), act.at)
      },
      committed: ({ id }) => invalidate(id),
    },
    deleteProject: {
      write: async (sql, { id, act }) => await deleteProject(sql, id, act),
      committed: ({ id }) => invalidate(id),
    },
    getProjectContent: async ({ id }) => projectContent(await getProject(database.sql, id), contentRules()),
    listProjectModels: async ({ id }) => listAnswer(await modelsOf(await getProject(database.sql, id))),
  } satisfies Partial<Handlers>
}

function projectContent(
  { id, workspaceId, exportsContent }: Project,
  { policies, contentExport }: ReturnType<RouteDependencies['contentRules']>,
): AnswerOf<'getProjectContent'> {
  const { url, sampleBasisPoints, charactersMax, redact, isAnnounced } = contentExport
  return {
    policies: policies
      .filter(
        (policy) =>
          (policy.workspaceId === undefined || policy.workspaceId === workspaceId) &&
          (policy.projects === undefined || policy.projects.includes(id)),
      )
      .map(({ id: policyId, when, mode, onFailure, models }) => {
        return { id: policyId, when, mode, on_failure: onFailure, models: models ?? null }
      }),
    export:
      url === undefined || !exportsContent
        ? null
        : {
            to: URL.parse(url)?.origin ?? url,
            sample_percent: sampleBasisPoints / 100,
            characters_max: charactersMax,
            redact,
            response_header: isAnnounced,
          },
    has_collector: url !== undefined,
  }
}

export function keyHandlers({ database, computeVerifier, invalidate, catalog }: RouteDependencies) {
  return {
    createKey: {
      async write(sql, { id, body, act, reach }) {
        const limits = body.limits == null ? undefined : limitsFromBody(body.limits, 'limits.')
        const models = body.models ?? undefined
        if (limits && namesModels(limits)) {
          const allowlists = [models, ...(await allowlistsOf(sql, 'project', id))]
          checkNextModels(limits, { catalog: catalog({ all: true }), allowlists, at: 'limits.' })
        }
        const wanted = {
          projectId: id,
          ownerId: reach.principal.personId,
          name: body.name,
          models,
          limits,
          expiresAt: body.expires_at ?? undefined,
          sources: body.sources ?? undefined,
        }
        const { key, secret } = await createKey(sql, wanted, act, computeVerifier)
        return { ...(await keyAnswers.one(sql, key, act.at)), secret }
      },
    },
    async listKeys({ query, act, reach }) {
      const workspaceId = reach.workspaceId ?? query.workspace_id
      const { project_id: projectId } = query
      const page = await listKeys(database.sql, {
        workspaceId,
        projectId,
        ownerId: reach.ownerId,
        page: pageOf(query),
      })
      return await keyAnswers.page(database.sql, page, act.at)
    },
    getKey: async ({ id, act }) => await keyAnswers.one(database.sql, await getKey(database.sql, id), act.at),
    revokeKey: {
      async write(sql, { id, act }) {
        return await keyAnswers.one(sql, await revokeKey(sql, id, act), act.at)
      },
      committed: ({ id }) => invalidate(id),
    },
    rotateKey: {
      async write(sql, { id, body, act }) {
        const wanted = { overlapSeconds: body.overlap_seconds ?? undefined }
        const { key, secret } = await rotateKey(sql, id, wanted, act, computeVerifier)
        return { ...(await keyAnswers.one(sql, key, act.at)), secret }
      },
      committed: ({ id }) => invalidate(id),
    },
  } satisfies Partial<Handlers>
}

type LimitCall = Call<'putWorkspaceLimits' | 'putProjectLimits' | 'putKeyLimits'>

export function limitHandlers({ database, invalidate, ledger, catalog }: RouteDependencies) {
  const putLimitsOf = (kind: 'workspace' | 'project' | 'key') => ({
    async write(sql: Sql, { id, body, act, reach }: LimitCall) {
      const limits = limitsFromBody(body)
      const isByAdmin = !reach.principal.isOperator
      const before = namesModels(limits) ? await readLimits(sql, kind, id) : undefined
      const stored = await putLimits(sql, { kind, id, isByAdmin }, limits, act)
      if (before) {
        const allowlists = await allowlistsOf(sql, kind, id)
        checkNextModels(limits, { catalog: catalog({ all: true }), allowlists, before })
      }
      return await limitsAnswer(sql, stored)
    },
    committed: ({ id }: LimitCall) => invalidate(id),
    async afterCommit({ id }: LimitCall) {
      const { spend = [], startsAt } = await readLimits(database.sql, kind, id)
      if (spend.length > 0) ledger.recount(id, spend, startsAt)
      const warnings = matchingNothing(spend, catalog({ all: true }))
      return warnings.length > 0 ? { warnings } : undefined
    },
  })
  return {
    putWorkspaceLimits: putLimitsOf('workspace'),
    putProjectLimits: putLimitsOf('project'),
    putKeyLimits: putLimitsOf('key'),
  } satisfies Partial<Handlers>
}

function matchingNothing(spend: readonly SpendLimit[], models: readonly { readonly id: string }[]): string[] {
  const patterns = new Set(spend.flatMap(({ models: pattern = [] }) => pattern))
  return [...patterns]
    .filter((pattern) => !models.some(({ id }) => matchesModel(pattern, id)))
    .map((pattern) => `${pattern} matches no model of the catalog, so its limit counts nothing.`)
}

export function groupHandlers({ database, invalidate }: RouteDependencies) {
  return {
    createGroup: {
      async write(sql, { id, body: { name, members = [] }, act }) {
        return groupAnswer(await createGroup(sql, id, { name, members }, act))
      },
      committed: ({ id }) => invalidate(id),
    },
    async listGroups({ id, query }) {
      return pageAnswer(await listGroups(database.sql, id, pageOf(query)), groupAnswer)
    },
    getGroup: async ({ id }) => groupAnswer(await getGroup(database.sql, id)),
    updateGroup: {
      async write(sql, { id, body, act }) {
        return groupAnswer(await updateGroup(sql, id, given(body), act))
      },
      async afterCommit({ id }) {
        invalidate((await getGroup(database.sql, id)).workspaceId)
        return undefined
      },
    },
    // No limit names it, so no cached key needs to know.
    deleteGroup: {
      async write(sql, { id, act }) {
        await deleteGroup(sql, id, act)
      },
    },
  } satisfies Partial<Handlers>
}

async function* exportPieces(
  { database, ledger, requests, storedResponses, batches }: RouteDependencies,
  workspace: Workspace,
  now: number,
): AsyncGenerator<string> {
  const { id } = workspace
  const { sql } = database
  yield line('workspace', await workspaceAnswers.one(sql, workspace, now))
  yield line('wallet', walletAnswer(await ledger.wallet(id), await creditOf(sql, id)))
  yield line('plan', await workspacePlanAnswer(sql, id, false))
  for (const each of await listPlanPayments(sql, id)) yield line('plan_payment', planPaymentAnswer(each))
  const objects: string[] = [id]
  for await (const project of everyItem((page) => listProjects(sql, id, page, { archived: 'true' }))) {
    objects.push(project.id)
    yield line('project', await projectAnswers.one(sql, project, now))
  }
  for await (const key of everyItem((page) => listKeys(sql, { workspaceId: id, page }))) {
    objects.push(key.id)
    yield line('key', await keyAnswers.one(sql, key, now))
  }
  for await (const group of everyItem((page) => listGroups(sql, id, page))) {
    objects.push(group.id)
    yield line('group', groupAnswer(group))
  }
  for (const each of await listCredentials(sql, id)) yield line('credential', credentialAnswer(each))
  for await (const transfer of everyItem((page) => transfersOf(ledger, id, page))) {
    yield line('transfer', transferAnswer(transfer, id))
  }
  for await (const request of everyItem((page) => requests.list({ ...page, workspaceId: id }))) {
    yield line('request', request)
  }
  for await (const { id: responseId, input, response } of storedResponses.list(id)) {
    yield line('response', { id: responseId, input: JSON.parse(input), response: JSON.parse(response) })
  }
  for await (const batch of everyItem((page) => batches.page({ ...page, workspaceId: id }))) {
    objects.push(batch.id)
    yield line('batch', batchAnswer(batch))
    for await (const row of batches.results(batch.id)) {
      yield line('batch_result', { batch_id: batch.id, result: JSON.parse(renderLine(batch, row)) })
    }
  }
  for (const object of objects) {
    for (const entry of await listAuditOf(sql, object)) yield line('audit', auditAnswer(entry))
  }
}

async function transfersOf(ledger: RouteDependencies['ledger'], id: WorkspaceId, page: PageQuery) {
  const { transfers, nextCursor } = await ledger.transfers(id, pageOf(page))
  return { items: transfers, nextCursor }
}

async function* everyItem<Item>(read: (page: PageQuery) => Promise<Page<Item>>): AsyncGenerator<Item> {
  for await (const page of everyPage(read)) yield* page
}

function line(record: string, fields: object): string {
  return `${JSON.stringify({ record, ...fields })}\n`
}
