// Every operation × every role × an object of the own workspace, of a colleague, of a foreign workspace, and none at all.
// The expectations are written by hand from the roles in docs/operate/sign-in.md, not read from the table in src/api.

import { expect, test } from 'bun:test'
import { insertBatch } from '../../../test/batches/parts.ts'
import { forEachEngine, type TestEngine } from '../../../test/parts/engines.ts'
import { openManagement, type TestManagement } from '../../../test/parts/management.ts'
import { endpoints, type OperationName } from '../../api/endpoints.ts'
import { idPrefixes } from '../../api/operation.ts'
import { operations } from '../../api/operations.ts'
import { createId, type KeyId, type PersonId, type ProjectId, type WorkspaceId } from '../../kernel/ids.ts'
import type { Nano } from '../../kernel/money.ts'
import type { Role } from '../../kernel/roles.ts'
import { type RequestRow, requestColumns, writeRequests } from '../../store/request-rows.ts'
import { createToken } from '../../tenancy/management-tokens.ts'
import { addMember, insertPerson } from '../../tenancy/people.ts'
import { createSignIn } from '../../tenancy/sign-ins.ts'
import { insertPayment } from '../payments/payments.ts'
import type { RouteDependencies } from './dependencies.ts'

const columns = ['own', 'colleague', 'foreign', 'missing'] as const
type Column = (typeof columns)[number]

/** Statuses in the order of `columns`; one number = the same for all. */
type Row = number | readonly [own: number, colleague: number, foreign: number, missing: number]

const all = (status: number): Row => [status, status, 404, 404]
/** Only what the person created. */
const own = (status: number): Row => [status, 404, 404, 404]
const no = 403

const admins = (status = 200) => [all(status), no, no] as const
const readers = [all(200), no, all(200)] as const
const everyone = [all(200), all(200), all(200)] as const
const operators = [no, no, no] as const
const self = (status: number) => [status, status, status] as const

/** admin, member, viewer */
const table: Readonly<Record<OperationName, readonly [Row, Row, Row]>> = {
  createWorkspace: operators,
  listWorkspaces: self(200),
  getWorkspace: everyone,
  updateWorkspace: admins(),
  putWorkspaceLimits: admins(),
  exportWorkspace: admins(),
  eraseWorkspace: operators,
  getWallet: readers,
  topUp: operators,
  correctWallet: operators,
  createCheckout: admins(201),
  listTransfers: readers,
  getStatement: readers,
  exportStatement: readers,
  listReceipts: readers,
  getPaymentSettings: readers,
  putAutoTopUp: admins(),
  stopAutoTopUp: admins(204),
  listPayments: readers,
  refundPayment: operators,
  createProject: admins(201),
  getWorkspacePlan: readers,
  putWorkspacePlan: operators,
  endWorkspacePlan: operators,
  // There is no such plan.
  subscribePlan: [[404, 404, 404, 404], no, no],
  cancelSubscription: admins(),
  listPlans: operators,
  putPlan: operators,
  deletePlan: operators,
  // The caller asks about themselves.
  getSubjectLimits: [all(200), all(200), no],
  // The second of the same name in one workspace is refused.
  createGroup: [[201, 400, 404, 404], no, no],
  listGroups: admins(),
  getGroup: admins(),
  updateGroup: admins(),
  deleteGroup: admins(204),
  listProjects: everyone,
  getProject: everyone,
  updateProject: admins(),
  deleteProject: admins(200),
  putProjectLimits: admins(),
  getProjectContent: everyone,
  listProjectModels: everyone,
  createKey: [all(201), all(201), no],
  listKeys: everyone,
  getKey: [all(200), own(200), all(200)],
  putKeyLimits: admins(),
  revokeKey: [all(200), own(200), no],
  rotateKey: [all(200), own(200), no],
  listCredentials: admins(),
  getCredential: admins(),
  putCredential: admins(),
  deleteCredential: admins(204),
  testCredential: admins(),
  listProviders: operators,
  getProviderHistory: operators,
  getProvider: operators,
  testProvider: operators,
  getCatalog: self(200),
  getPrice: operators,
  putPrice: operators,
  resetPrice: operators,
  updatePrices: operators,
  getPlan: operators,
  listPriceLists: operators,
  getPriceList: operators,
  putPriceList: operators,
  deletePriceList: operators,
  followRequests: everyone,
  exportRequests: everyone,
  listRequests: everyone,
  getRequest: [all(200), own(200), all(200)],
  getStats: everyone,
  exportUsage: everyone,
  getUsage: everyone,
  getUsageSeries: everyone,
  estimateReport: everyone,
  getRequestFacets: everyone,
  getMargin: operators,
  listBatches: everyone,
  getBatch: [all(200), own(200), all(200)],
  cancelBatch: [all(200), own(200), no],
  exportBatch: [all(200), own(200), no],
  runReconciliation: operators,
  exportReconciliation: operators,
  getReconciliation: operators,
  exportFocus: operators,
  listAlerts: readers,
  createAlertRule: admins(201),
  listAlertRules: admins(),
  updateAlertRule: admins(),
  deleteAlertRule: admins(204),
  createWebhook: admins(201),
  listWebhooks: admins(),
  deleteWebhook: admins(204),
  testWebhook: admins(201),
  listDeliveries: admins(),
  listRecentDeliveries: admins(),
  markAlertsRead: self(204),
  replayDelivery: admins(201),
  getMe: self(200),
  updateMe: self(200),
  // This and createToken need a console session.
  changePassword: self(400),
  endSessions: self(200),
  listSessions: self(200),
  endSession: [own(204), own(204), own(204)],
  // A device is approved in a console session.
  openDeviceGrant: self(400),
  approveDeviceGrant: self(400),
  denyDeviceGrant: self(400),
  listOwnSignIns: self(200),
  endOwnSignIns: self(200),
  listSignIns: [all(200), all(200), no],
  endSignIn: [all(204), own(204), no],
  endWorkspaceSignIns: admins(),
  createSignInLink: operators,
  createToken: self(400),
  listTokens: self(200),
  revokeToken: [own(204), own(204), own(204)],
  listMembers: admins(),
  updateMember: admins(),
  removeMember: admins(204),
  createResetLink: admins(201),
  createInvitation: admins(201),
  listInvitations: admins(),
  revokeInvitation: admins(204),
  getManagedSettings: operators,
  putManagedSettings: operators,
  previewManagedSettings: operators,
  exportAudit: operators,
  listAudit: operators,
  getConfig: operators,
  getConfigFile: operators,
  updateConfigFile: operators,
  getOpenApi: self(200),
}

const checkout: NonNullable<RouteDependencies['checkout']> = async () => ({
  ...{ id: 'cs_1', url: 'https://pay.example', payment_id: 'pay_1' },
})
const autoTopUps: NonNullable<RouteDependencies['autoTopUps']> = {
  bounds: () => ({ min: 1n as Nano, max: 1n as Nano }),
  read: async () => undefined,
  turnOn: async () => {},
  turnOff: async () => {},
  round: async () => {},
}

const subscriptions = {
  choose: async () => ({ url: null }),
  cancel: async () => {},
} as unknown as NonNullable<RouteDependencies['subscriptions']>

interface Tenant {
  readonly workspaceId: WorkspaceId
  readonly projectId: string
}

interface Caller {
  readonly personId: PersonId
  readonly token: string
}

async function openRoles(engine: TestEngine) {
  const management = await openManagement(engine, { checkout, autoTopUps, subscriptions, pause: async () => {} })
  const tenant = async (name: string): Promise<Tenant> => {
    const { id: workspaceId } = await management.make('/api/workspaces', { name })
    const { id: projectId } = await management.make(`/api/workspaces/${workspaceId}/projects`, { name: `${name} web` })
    await management.ask('PUT', `/api/workspaces/${workspaceId}/credentials/acme`, { body: { api_key: 'sk-x' } })
    return { workspaceId, projectId }
  }
  const person = (role: Role, workspaceId: WorkspaceId | undefined, label: string) =>
    management.database.transaction(async (sql): Promise<Caller> => {
      const at = management.clock.now()
      const personId = await insertPerson(sql, { email: `${label}@example.com`, name: label }, at)
      await addMember(sql, personId, { role, workspaceId }, 'invitation', at)
      const input = { personId, role, workspaceId, name: 'table', days: 30 }
      return { personId, token: (await createToken(sql, input, { actor: personId, at })).secret }
    })
  const [ours, theirs] = [await tenant('ours'), await tenant('foreign-name')]
  const callers = {
    operator: await person('operator', undefined, 'operator'),
    admin: await person('admin', ours.workspaceId, 'admin'),
    member: await person('member', ours.workspaceId, 'member'),
    viewer: await person('viewer', ours.workspaceId, 'viewer'),
  }
  // Colleagues of the same roles, so that no admin is the last one.
  const colleague = await person('admin', ours.workspaceId, 'colleague')
  const stranger = await person('admin', theirs.workspaceId, 'stranger')
  await person('admin', theirs.workspaceId, 'stranger2')
  return { management, ours, theirs, callers, colleague, stranger, person }
}

type Roles = Awaited<ReturnType<typeof openRoles>>
let made = 0

/** An object of the operation's kind that exists, fresh for each call: some calls end it. */
async function objectOf(roles: Roles, name: OperationName, column: Column, caller: Caller): Promise<string> {
  const { management, ours, theirs, colleague, stranger, person } = roles
  const kind = kindOf(name)
  if (kind === undefined) return ''
  if (column === 'missing') return createId(idPrefixes[kind])
  const place = column === 'foreign' ? theirs : ours
  const owner = column === 'own' ? caller : column === 'foreign' ? stranger : colleague
  const at = management.clock.now()
  const label = `${column}${++made}`
  switch (kind) {
    case 'workspace':
      return place.workspaceId
    case 'project': {
      if (name !== 'deleteProject') return place.projectId
      return (await management.make(`/api/workspaces/${place.workspaceId}/projects`, { name: label })).id
    }
    case 'key':
      return await keyOf(management, place.projectId, owner)
    case 'request':
      return await requestOf(management, place, await keyOf(management, place.projectId, owner))
    case 'batch': {
      const { workspaceId, projectId } = place
      const keyId = await keyOf(management, projectId, owner)
      // Created with either API.
      const id = createId(made % 2 === 0 ? 'batch' : 'msgbatch')
      await insertBatch(management.database, { workspaceId, projectId: projectId as ProjectId, keyId }, { id })
      return id
    }
    case 'member': {
      const { personId } = await person('member', place.workspaceId, label)
      const [row] = await management.database.sql<{ id: string }>`SELECT id FROM members WHERE person_id = ${personId}`
      return row?.id ?? ''
    }
    case 'invitation': {
      const body = { email: `${label}@example.com`, role: 'viewer', workspace_id: place.workspaceId }
      return (await management.make('/api/invitations', body)).id
    }
    case 'token': {
      const { personId } = owner
      const workspaceId = place.workspaceId
      const [grant] = await management.database.sql<{ role: Role }>`SELECT role FROM members
        WHERE person_id = ${personId}`
      const role = grant?.role ?? 'viewer'
      const scope = role === 'operator' ? undefined : workspaceId
      const input = { personId, role, workspaceId: scope, name: 'x', days: 1 }
      const { token } = await management.database.transaction((sql) => createToken(sql, input, { actor: personId, at }))
      return token.id
    }
    case 'session': {
      const id = createId('ses')
      const times = { opened_at: BigInt(at), used_at: BigInt(at) }
      const row = { hash: id, id, client: '', fingerprint: '', person_id: owner.personId, ...times }
      await management.database.transaction((sql) => sql`INSERT INTO console_sessions ${sql([row])}`)
      return id
    }
    case 'group':
      return (
        await management.make(`/api/workspaces/${place.workspaceId}/groups`, { name: createId('grp').toLowerCase() })
      ).id
    case 'rule':
      return (await management.make('/api/alert-rules', { kind: 'topup.failed', workspace_id: place.workspaceId })).id
    case 'device': {
      const { personId } = owner
      const signIn = { personId, projectId: place.projectId as ProjectId, client: 'tollgate', device: label }
      const made = await management.database.transaction((sql) => createSignIn(sql, signIn, at))
      return made.subject.signInId
    }
    case 'webhook':
    case 'delivery': {
      const body = { url: 'https://example.com/', workspace_id: place.workspaceId }
      const { id } = await management.make('/api/webhooks', body)
      return kind === 'webhook' ? id : (await management.make(`/api/webhooks/${id}/test`, {})).delivery_id
    }
    case 'payment': {
      const facts = { workspaceId: place.workspaceId, kind: 'checkout', amount: 1n as Nano } as const
      return (await management.database.transaction((sql) => insertPayment(sql, facts, at))) ?? ''
    }
    default:
      throw new Error(`no object for ${kind}`)
  }
}

const kindOf = (name: OperationName) => {
  const row = operations[name]
  return 'kind' in row ? row.kind : undefined
}

async function keyOf(management: TestManagement, projectId: string, { personId }: Caller): Promise<KeyId> {
  const { id } = await management.make(`/api/projects/${projectId}/keys`, { name: 'k' })
  await management.database.transaction((sql) => sql`UPDATE api_keys SET owner_id = ${personId} WHERE id = ${id}`)
  return id
}

async function requestOf(
  management: TestManagement,
  { workspaceId, projectId }: Tenant,
  keyId: KeyId,
): Promise<string> {
  const id = createId('req')
  const numbers = { started_at: management.clock.now(), stream: 0, status: 200, total_ms: 1, estimated: 0 }
  const empty = Object.fromEntries(requestColumns.map((column) => [column, null]))
  const ids = { id, workspace_id: workspaceId, project_id: projectId, key_id: keyId, path: '/v1/messages' }
  const row = { ...empty, ...numbers, ...ids } as RequestRow
  const { database } = management
  await database.transaction((sql) => writeRequests(sql, database.engine, [row]))
  management.logged.push({ id, workspace_id: workspaceId, project_id: projectId, key_id: keyId })
  return id
}

const createdInWorkspace: ReadonlySet<OperationName> = new Set(['createInvitation', 'createWebhook', 'createAlertRule'])

/** Operations that name a workspace in their query or body instead of their path. */
function isScopedByWorkspace(name: OperationName): boolean {
  const row = operations[name]
  if (kindOf(name) !== undefined) return false
  return createdInWorkspace.has(name) || ('query' in row && 'workspace_id' in row.query.shape)
}

async function callOf(roles: Roles, name: OperationName, column: Column, caller: Caller) {
  const { management, ours, theirs } = roles
  const [method, template] = endpoints[name]
  const row = operations[name]
  const id = await objectOf(roles, name, column, caller)
  // An earlier call may have deleted it.
  if (name === 'deleteCredential' && column !== 'missing') {
    await management.ask('PUT', `/api/workspaces/${id}/credentials/acme`, { body: { api_key: 'sk-x' } })
  }
  const named = { own: ours, colleague: ours, foreign: theirs }
  const workspaceId = column === 'missing' ? createId('ws') : named[column].workspaceId
  const path = template
    .replace('{id}', id)
    .replace('{provider}', 'acme')
    .replace('{model}', 'acme%2Flarge')
    .replace('{list}', 'partners')
    .replace('{plan}', 'pro')
  const isScoped = isScopedByWorkspace(name)
  const query =
    name === 'getSubjectLimits'
      ? `?subject=person:${caller.personId}`
      : isScoped && method === 'GET'
        ? `?workspace_id=${workspaceId}`
        : ''
  const example = 'example' in row ? row.example : {}
  const inBody = {
    ...(createdInWorkspace.has(name) && { workspace_id: workspaceId }),
    ...(name === 'createInvitation' && { email: `new${++made}@example.com` }),
  }
  const body = 'body' in row ? { body: { ...(example as object), ...inBody } } : {}
  return {
    id: id || workspaceId,
    ...(await management.ask(method, `${path}${query}`, { token: caller.token, ...body })),
  }
}

const names = Object.keys(endpoints) as OperationName[]

forEachEngine((engine) => {
  test('T9: every operation × every role × own, colleague’s, foreign and missing', async () => {
    const roles = await openRoles(engine)
    await using _ = roles.management
    const workspaceRoles = ['admin', 'member', 'viewer'] as const
    for (const name of names) {
      for (const [at, role] of workspaceRoles.entries()) {
        const row = table[name][at] as Row
        const caller = roles.callers[role]
        const isPlain = kindOf(name) === undefined && !isScopedByWorkspace(name)
        const answers = []
        for (const column of isPlain ? columns.slice(0, 1) : columns)
          answers.push(await callOf(roles, name, column, caller))
        const expected = typeof row === 'number' ? answers.map(() => row) : row
        expect([name, role, ...answers.map(({ status }) => status)]).toEqual([name, role, ...expected])
        // Nothing of the foreign workspace is in any answer, and a foreign object is answered like a missing one.
        for (const { text } of answers) {
          expect([name, role, /foreign-name|stranger/.test(text)]).toEqual([name, role, false])
        }
        const [, , foreign, missing] = answers
        if (foreign && missing) {
          expect(foreign.text.replaceAll(foreign.id, 'ID')).toBe(missing.text.replaceAll(missing.id, 'ID'))
        }
      }
    }
    expect(roles.management.defects).toEqual([])
  })

  test('T9: members see their own limits and those of their groups, and not what others may spend', async () => {
    const { management, ours, callers, colleague } = await openRoles(engine)
    await using _ = management
    const place = `/api/workspaces/${ours.workspaceId}`
    await management.make(`${place}/groups`, { name: 'design', members: [callers.member.personId] })
    await management.make(`${place}/groups`, { name: 'board', members: [colleague.personId] })
    const limit = (subject: string, amount: string) => ({ subject, window: 'day', limit: amount })
    const spendLimits = [
      ...[limit('person', '9.00'), limit('group:design', '8.00'), limit('person:member@example.com', '7.00')],
      ...[limit('group:board', '6.00'), limit('person:colleague@example.com', '5.00')],
    ]
    const body = { spend_per_day: '50.00', spend_limits: spendLimits }
    for (const path of [place, `/api/projects/${ours.projectId}`]) {
      expect((await management.ask('PUT', `${path}/limits`, { body })).status).toBe(200)
    }
    const limitsIn = async (role: keyof typeof callers, path: string) => {
      const { body: answer } = await management.ask('GET', path, { token: callers[role].token })
      const [{ limits, spend }] = answer.data ?? [answer]
      const subjects = limits.spend_limits.map(({ subject }: { subject: string }) => subject)
      return [limits.spend_per_day, ...subjects, ...spend.map((state: { subject?: string }) => state.subject)]
    }
    const own = ['50.00', 'person', 'group:design', 'person:member@example.com']
    const ownStates = [undefined, 'group:design', 'person:member@example.com']
    for (const path of ['/api/workspaces', place, `${place}/projects`, `/api/projects/${ours.projectId}`]) {
      expect([path, ...(await limitsIn('member', path))]).toEqual([path, ...own, ...ownStates])
      for (const role of ['admin', 'viewer'] as const) {
        const all = [...own, 'group:board', 'person:colleague@example.com']
        const states = [...ownStates, 'group:board', 'person:colleague@example.com']
        expect([path, role, ...(await limitsIn(role, path))]).toEqual([path, role, ...all, ...states])
      }
    }
  })

  test('T9: an admin limits people and groups of the workspace, and cannot raise or remove what the operator set', async () => {
    const { management, ours, callers } = await openRoles(engine)
    await using _ = management
    const place = `/api/workspaces/${ours.workspaceId}`
    await management.make(`${place}/groups`, { name: 'design', members: [callers.member.personId] })
    const limit = (subject: string, amount: string, window = 'day') => ({ subject, window, limit: amount })
    const ofOperator = {
      requests_per_minute: 60,
      spend_per_day: '50.00',
      spend_limits: [limit('group:design', '8.00'), limit('person', '9.00')],
    }
    expect((await management.ask('PUT', `${place}/limits`, { body: ofOperator })).status).toBe(200)
    const put = async (body: object) => {
      const asked = await management.ask('PUT', `${place}/limits`, { token: callers.admin.token, body })
      return asked.status === 200 ? asked.body : [asked.status, asked.body.error.message]
    }
    const ofAdmin = [limit('group:design', '3.00'), limit('person:member@example.com', '2.00', '5h')]
    const both = [...ofOperator.spend_limits, ...ofAdmin.map((each) => ({ ...each, set_by: 'admin' }))]
    expect(await put({ spend_limits: ofAdmin })).toEqual({ ...ofOperator, spend_limits: both })
    // As a form sends it that shows all of them.
    expect(await put({ ...ofOperator, spend_limits: both })).toEqual({ ...ofOperator, spend_limits: both })
    const others = 'Admins of a workspace limit its people and groups; its other limits are set by the operator.'
    for (const body of [
      { spend_per_day: '500.00' },
      { requests_per_minute: 600 },
      { starts_at: '2030-01-01' },
      { spend_limits: [{ ...limit('all', '1.00'), models: 'acme/*' }] },
    ]) {
      expect(await put(body)).toEqual([403, expect.stringContaining(others)])
    }
    expect(await put({ spend_limits: [limit('group:design', '8.00', 'day'), limit('person', '10.00')] })).toEqual([
      400,
      '`spend_limits: person day` is limited to $9.00 by the operator: a limit of the same must be lower.',
    ])
    const twice = await put({ spend_limits: [limit('person', '1.00'), limit('person', '2.00')] })
    expect(twice).toEqual([400, '`spend_limits: person day set by admin` is set twice.'])
    // Members see their own of both.
    const { body: seen } = await management.ask('GET', place, { token: callers.member.token })
    expect(seen.limits.spend_limits).toEqual(both)
    expect(await put({})).toEqual(ofOperator)
    const { status } = await management.ask('PUT', `${place}/limits`, { token: callers.member.token, body: {} })
    expect(status).toBe(403)
    const project = `/api/projects/${ours.projectId}/limits`
    const elsewhere = await management.ask('PUT', project, { body: { spend_limits: [both[2]] } })
    expect([elsewhere.status, elsewhere.body.error.message]).toEqual([
      400,
      '`spend_limits`: `set_by` is only for limits of people and groups in a workspace.',
    ])
  })

  test('T9: an admin cannot choose what the workspace pays', async () => {
    const { management, ours, callers } = await openRoles(engine)
    await using _ = management
    const path = `/api/workspaces/${ours.workspaceId}`
    const body = { name: 'cheap', price_list: null }
    const { status, body: answer } = await management.ask('PATCH', path, { token: callers.admin.token, body })
    expect([status, answer.error.param]).toEqual([403, 'price_list'])
  })

  test('T9: an operator is served in every workspace like the management token', async () => {
    const roles = await openRoles(engine)
    await using _ = roles.management
    for (const name of names) {
      if (name === 'eraseWorkspace') continue
      const isPlain = kindOf(name) === undefined && !isScopedByWorkspace(name)
      for (const column of isPlain ? (['own'] as const) : (['own', 'foreign'] as const)) {
        const { status } = await callOf(roles, name, column, roles.callers.operator)
        const expected = asOperator[name] ?? operations[name].status
        expect([name, column, status]).toEqual([name, column, expected])
      }
    }
  })
})

/** Tokens and passwords belong to a session; nothing was paid through Stripe; there is no price list, and no bill is configured. */
const asOperator: Readonly<Partial<Record<OperationName, number>>> = {
  changePassword: 400,
  createToken: 400,
  openDeviceGrant: 400,
  approveDeviceGrant: 400,
  denyDeviceGrant: 400,
  refundPayment: 404,
  getPriceList: 404,
  putWorkspacePlan: 404,
  subscribePlan: 404,
  runReconciliation: 404,
}
