/** The kinds of alerts. `test` is sent on request. */
export const alertKinds = [
  'balance.low',
  'limit.reached',
  'provider.down',
  'provider.up',
  'provider.stray',
  'price.changed',
  'topup.failed',
  'test',
] as const
export type AlertKind = (typeof alertKinds)[number]
