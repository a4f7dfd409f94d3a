// Handlers of devices: approving one that waits with a code, which only a person's console session can, the devices on which
// people are signed in, and the settings that they get.

import type { z } from 'zod'
import { deviceGrantSchema, type settingsRuleSchema, signInSchema } from '../../api/sign-ins.ts'
import { Failure, invalidRequest } from '../../kernel/failure.ts'
import { networkOf } from '../../kernel/ip-range.ts'
import { storeNow } from '../../store/database.ts'
import type { Sql } from '../../store/sql.ts'
import {
  type Approver,
  approveGrant,
  denyGrant,
  openGrant,
  readUserCode,
  unknownCode,
} from '../../tenancy/device-grants.ts'
import {
  mergeSettings,
  putSettingsRules,
  readSettingsRules,
  type SettingsRule,
  type SettingsRules,
  settingsReaderOf,
} from '../../tenancy/managed-settings.ts'
import type { Principal } from '../../tenancy/principal.ts'
import { endSignIn, endSignInsIn, endSignInsOf, listSignIns } from '../../tenancy/sign-ins.ts'
import { answerAs, pageAnswer, pageOf } from './answers.ts'
import type { RouteDependencies } from './dependencies.ts'
import type { Call, Handlers } from './route.ts'

export function signInHandlers({ database, clock, invalidate, signIns }: RouteDependencies) {
  type Decision = (sql: Sql, hashes: readonly string[], approver: Approver, at: number) => Promise<unknown>

  /** Whoever types wrong codes is slowed down, and can do so only a few times. */
  const decide = async (
    { code }: { readonly code: string },
    { reach: { principal }, address }: Pick<Call<'openDeviceGrant'>, 'reach' | 'address'>,
    work: Decision,
  ) => {
    const approver = approverOf(principal)
    const network = networkOf(address)
    const typed = readUserCode(code)
    const attempt = signIns.guesses.userCode(approver.personId, network)
    let isWrong = true
    try {
      if (attempt instanceof Failure) throw attempt
      if (typed === undefined) throw unknownCode()
      const decided = await database.transaction(async (sql) => {
        const at = await storeNow({ engine: database.engine, sql }, clock)
        return await work(sql, signIns.userCodes.hashes(typed), approver, at)
      })
      isWrong = false
      return decided
    } catch (thrown) {
      isWrong = thrown === attempt || (thrown instanceof Failure && thrown.facts.param === 'code')
      if (!isWrong) throw thrown
      signIns.count('refused')
      signIns.onRefused('user code')
      if (thrown === attempt) throw thrown
      // By network too: where anyone may sign up, guessing from many accounts must not be quicker.
      const slowed = await signIns.slowName(`user code ${approver.personId}`)
      throw slowed ?? (await signIns.slowName(`user code ${network}`)) ?? thrown
    } finally {
      if (!isWrong && !(attempt instanceof Failure)) attempt.forgive()
    }
  }

  const rulesAnswer = ({ rules, managedBy }: SettingsRules) => ({
    rules: rules.map(({ role = null, group = null, settings }) => ({
      ...{ role, group },
      settings: { ...settings },
    })),
    managed_by: managedBy,
  })

  return {
    getManagedSettings: async () => rulesAnswer(await readSettingsRules(database.sql)),
    putManagedSettings: {
      write: async (sql, { body, act }) => rulesAnswer(await putSettingsRules(sql, body.rules.map(ruleFrom), act)),
    },
    async previewManagedSettings({ body: { role, groups, member_id: memberId, rules } }) {
      const all = rules ? rules.map(ruleFrom) : (await readSettingsRules(database.sql)).rules
      const reader =
        memberId == null
          ? { role: role ?? undefined, groups: groups ?? [] }
          : await settingsReaderOf(database.sql, { memberId })
      const merged = mergeSettings(all, reader)
      return {
        ...{ role: reader.role ?? null, groups: [...reader.groups] },
        ...{ settings: merged ? { ...merged.settings } : null, checksum: merged?.checksum ?? null },
      }
    },
    // These three are not a `write`: they use the time of the database, and a code that was mistyped is slow to answer.
    async openDeviceGrant({ body, reach, address }) {
      const open: Decision = async (sql, hashes, approver, at) =>
        deviceGrantAnswer(await openGrant(sql, hashes, approver, at))
      return (await decide(body, { reach, address }, open)) as ReturnType<typeof deviceGrantAnswer>
    },
    async approveDeviceGrant({ body, act, ...from }) {
      const { project_id: projectId } = body
      await decide(body, from, (sql, hashes, approver, at) =>
        approveGrant(sql, hashes, { approver, projectId }, { ...act, at }),
      )
      signIns.count('approved')
    },
    async denyDeviceGrant({ body, act, ...from }) {
      await decide(body, from, (sql, hashes, approver, at) => denyGrant(sql, hashes, approver, { ...act, at }))
      signIns.count('denied')
    },
    async listOwnSignIns({ query, act, reach: { principal } }) {
      const { personId } = principal
      if (personId === undefined) return pageAnswer({ items: [], nextCursor: undefined }, signInAnswer)
      const page = await listSignIns(database.sql, { personId, page: pageOf(query), now: act.at })
      return pageAnswer(page, signInAnswer)
    },
    endOwnSignIns: {
      async write(sql, { act, reach: { principal } }) {
        const { personId } = principal
        const ended = personId === undefined ? 0 : await endSignInsOf(sql, personId, act)
        for (let at = 0; at < ended; at++) signIns.count('ended')
        return { ended }
      },
      committed({ reach: { principal } }) {
        if (principal.personId !== undefined) invalidate(principal.personId)
      },
    },
    async listSignIns({ query, act, reach }) {
      const { workspaceId = query.workspace_id, ownerId: personId } = reach
      const page = await listSignIns(database.sql, { workspaceId, personId, page: pageOf(query), now: act.at })
      return pageAnswer(page, signInAnswer)
    },
    endWorkspaceSignIns: {
      async write(sql, { id, act }) {
        const ended = await endSignInsIn(sql, id, act)
        for (let at = 0; at < ended; at++) signIns.count('ended')
        return { ended }
      },
      committed: ({ id }) => invalidate(id),
    },
    // Not a `write`: which key it has is known only after the commit.
    async endSignIn({ id, act }) {
      invalidate(await database.transaction((sql) => endSignIn(sql, id, act)))
      signIns.count('ended')
    },
  } satisfies Partial<Handlers>
}

function ruleFrom({ role, group, settings }: z.output<typeof settingsRuleSchema>): SettingsRule {
  return { role: role ?? undefined, group: group ?? undefined, settings }
}

/** A token must not make others that outlive it, and the installation is no person. */
function approverOf({ kind, personId, session, isNarrowed }: Principal): Approver {
  // The device would get the person's own role, and a narrowed session must not give away more than it has.
  if (isNarrowed) throw invalidRequest('Stop viewing the console as someone else first: a device gets your own role.')
  if (kind === 'person' && personId !== undefined && session) return { personId, sessionId: session.id }
  throw invalidRequest(
    'Only a person who signed in to the console can do this, because a device is signed in as a person.',
  )
}

const signInAnswer = answerAs(signInSchema)
const deviceGrantAnswer = answerAs(deviceGrantSchema)
