/** The kinds of alerts. `test` is sent on request; `batch.ended` is for programs that wait for it. */
export const alertKinds = [
  'balance.low',
  'limit.reached',
  'provider.down',
  'provider.up',
  'provider.stray',
  'price.changed',
  'bill.differs',
  'topup.failed',
  'plan.unpaid',
  'credit.expiring',
  'batch.ended',
  'test',
] as const
export type AlertKind = (typeof alertKinds)[number]

/** What rules watch. A rule for `provider.down` also sends `provider.up`; a `test` and `batch.ended` need no rule. */
export const ruleKinds = [
  'balance.low',
  'limit.reached',
  'topup.failed',
  'plan.unpaid',
  'credit.expiring',
  'provider.down',
  'provider.stray',
  'price.changed',
  'bill.differs',
] as const
export type RuleKind = (typeof ruleKinds)[number]

/** Rules with percentages: of a spend limit, or of a bill. */
export const percentRuleKinds: ReadonlySet<RuleKind> = new Set(['limit.reached', 'bill.differs'])

/** What a workspace may have rules for; the others are about the installation. */
export const workspaceRuleKinds: ReadonlySet<RuleKind> = new Set([
  'balance.low',
  'limit.reached',
  'topup.failed',
  'plan.unpaid',
  'credit.expiring',
])

/** undefined = it is sent without a rule. */
export function ruleKindOf(kind: AlertKind): RuleKind | undefined {
  if (kind === 'test' || kind === 'batch.ended') return undefined
  return kind === 'provider.up' ? 'provider.down' : kind
}

export const webhookFormats = ['standard', 'slack'] as const
export type WebhookFormat = (typeof webhookFormats)[number]
