//! kubectl and oc.

use crate::{
    arg::Arg,
    commands::{
        options::ParsedArguments,
        spec::{CommandSpec, KnownCommand, OperandKind, OptionStyle, UnsafeOption, runs, writes},
        verbs::{self, VerbProgram, change, unsure, verb},
    },
    effect::{CommandFinding, EffectVerdict},
};

pub(in crate::commands) const ENTRIES: &[KnownCommand] =
    &[KnownCommand::Own("kubectl oc", kubectl)];

/// Options that every verb accepts, before it and after it.
macro_rules! everywhere {
    () => {
        " -n: -v: --namespace= --request-timeout= --v= --vmodule= --match-server-version=? \
         --warnings-as-errors=? --disable-compression=? --log-flush-frequency= --help "
    };
}

/// Options that select the output format of a verb.
macro_rules! printing {
    () => {
        " -o: --output= --template= --allow-missing-template-keys=? --show-managed-fields=? \
         --no-headers=? --sort-by= -l: --selector= --field-selector= -A --all-namespaces=? \
         --chunk-size= "
    };
}

const REFUSED: &[UnsafeOption] = &[
    runs(
        "-s: --server= --cluster= --context= --tls-server-name= --insecure-skip-tls-verify=?",
        "chooses another endpoint",
    ),
    runs(
        "--kubeconfig= --cache-dir=",
        "chooses another configuration",
    ),
    runs(
        "--user= --username= --password= --token= --as= --as-group= --as-uid= --client-certificate= \
         --client-key= --certificate-authority=",
        "chooses other credentials",
    ),
    writes("--profile= --profile-output=", "writes a profile"),
];

const KUBECTL: VerbProgram = VerbProgram {
    before: CommandSpec::prints("kubectl", everywhere!())
        .refusing(REFUSED)
        .style(OptionStyle::Posix)
        .strict(),
    verbs: &[
        ask(
            "get",
            concat!(
                everywhere!(),
                printing!(),
                " -w -L: --ignore-not-found=? --label-columns= --output-watch-events=? --server-print=? \
                 --show-kind=? --show-labels=? --subresource= --watch=? --watch-only=? "
            ),
        ),
        ask(
            "describe",
            concat!(everywhere!(), printing!(), " --show-events=? "),
        ),
        ask(
            "logs",
            concat!(
                everywhere!(),
                " -fp -c: -l: --all-containers=? --all-pods=? --container= --follow=? --ignore-errors=? \
                 --limit-bytes= --max-log-requests= --pod-running-timeout= --prefix=? --previous=? \
                 --selector= --since= --since-time= --tail= --timestamps=? "
            ),
        ),
        ask(
            "top/pod top/pods top/po top/node top/nodes top/no",
            concat!(
                everywhere!(),
                printing!(),
                " --containers=? --sum=? --use-protocol-buffers=? --show-capacity=? "
            ),
        ),
        ask(
            "explain",
            concat!(
                everywhere!(),
                " -o: --output= --api-version= --recursive=? "
            ),
        ),
        ask(
            "api-resources",
            concat!(
                everywhere!(),
                printing!(),
                " --api-group= --cached=? --categories= --namespaced=? --verbs= "
            ),
        ),
        ask("api-versions cluster-info", everywhere!()).operands(OperandKind::None),
        ask(
            "version",
            concat!(everywhere!(), " -o: --output= --client=? --short=? "),
        ),
        ask(
            "config/view",
            concat!(
                everywhere!(),
                " -o: --output= --template= --merge=? --minify=? "
            ),
        ),
        ask(
            "config/get-contexts config/current-context config/get-clusters config/get-users",
            concat!(everywhere!(), " -o: --output= --no-headers=? "),
        ),
        ask(
            "rollout/status rollout/history",
            concat!(
                everywhere!(),
                " -o: -l: -w --output= --template= --selector= --revision= --timeout= --watch=? "
            ),
        ),
        ask(
            "auth/can-i auth/whoami",
            concat!(
                everywhere!(),
                printing!(),
                " -q --list=? --quiet=? --subresource= "
            ),
        ),
        ask(
            "events",
            concat!(everywhere!(), printing!(), " -w --for= --types= --watch=? "),
        ),
        ask(
            "wait",
            concat!(
                everywhere!(),
                printing!(),
                " --all=? --for= --timeout= --local=? "
            ),
        ),
        ask("plugin/list completion help options status", everywhere!()),
        ask(
            "whoami project projects",
            concat!(everywhere!(), " -q --short=? "),
        )
        .with_evaluator(about_me),
    ],
    others: &[
        unsure(
            "exec attach cp debug rsh rsync",
            "it works inside a container",
        ),
        unsure("port-forward proxy", "it opens a port"),
        unsure("diff", "it starts a diff program"),
        unsure("kustomize", "it may fetch what the files name"),
        unsure("cluster-info/dump", "it prints every object of the cluster"),
        unsure("create/token", "it prints a token"),
        change(
            "apply create replace patch edit set label annotate autoscale scale expose run",
            "it changes the cluster",
        ),
        change("delete", "it deletes from the cluster"),
        change(
            "drain cordon uncordon taint certificate",
            "it changes the cluster",
        ),
        change(
            "rollout/restart rollout/undo rollout/pause rollout/resume",
            "it changes the cluster",
        ),
        change("config", "it changes the configuration"),
        change(
            "login logout new-project new-app adm",
            "it changes the cluster or credentials",
        ),
    ],
    unknown: "what this verb does is not known, or it is a plugin",
};

const fn ask(names: &'static str, options: &'static str) -> CommandSpec {
    verb(names, options).refusing(REFUSED).with_evaluator(judge)
}

fn kubectl(argv: &[Arg]) -> CommandFinding {
    verbs::judge(&KUBECTL, argv)
}

/// Returns whether a verb of kubectl only reads.
pub(in crate::commands) fn is_reading_verb(verb: &str) -> bool {
    KUBECTL.verbs.iter().any(|spec| spec.is_called(verb))
}

fn judge(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let finding = parsed.finding(OperandKind::Text);
    if finding.verdict != EffectVerdict::ReadOnly {
        return finding;
    }
    let reads = matches!(
        parsed.argv.first().and_then(Arg::text),
        Some("get" | "describe")
    );
    if reads && let Some(secret) = parsed.operands.iter().find(|arg| names_secrets(arg)) {
        return CommandFinding::unknown("it prints secrets").with_span(secret.span);
    }
    if parsed.spec.operands == OperandKind::None
        && let Some(more) = parsed.operands.first()
    {
        return CommandFinding::unknown("what it would print is not known").with_span(more.span);
    }
    // `-o jsonpath-file=f` and similar formats read a file.
    let from_file = parsed.options.iter().find(|given| {
        let prints = matches!(given.name, "-o" | "--output" | "--template");
        let text = given.value.as_ref().and_then(Arg::text);
        prints && text.is_none_or(|text| text.contains("-file") || given.name == "--template")
    });
    match from_file {
        Some(given) => {
            CommandFinding::unknown("its format may come from a file").with_span(given.span)
        }
        None => finding,
    }
}

/// Returns whether an operand names secrets: `secret`, `secrets/x`, `pods,secrets.v1.`
fn names_secrets(arg: &Arg) -> bool {
    let Some(text) = arg.text() else { return true };
    text.split([',', '/']).any(|part| {
        let kind = part.split('.').next().unwrap_or(part);
        kind.eq_ignore_ascii_case("secret") || kind.eq_ignore_ascii_case("secrets")
    })
}

/// Analyzes `oc whoami`, where `-t` prints a token, and `oc project`, where an operand switches
/// projects.
fn about_me(parsed: &ParsedArguments<'_>) -> CommandFinding {
    match parsed.operands.first() {
        Some(_) if parsed.verdict().is_none() => CommandFinding::mutating("it changes the project"),
        _ => parsed.finding(OperandKind::Text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::testing::*;

    #[test]
    fn reading_verbs_are_read_only() {
        assert_only_reads(&[
            "kubectl get pods",
            "kubectl get pods -A -o wide",
            "kubectl -n kube-system get deploy,svc -l app=x",
            "kubectl get pod x -o yaml --namespace y",
            "kubectl get events --sort-by=.lastTimestamp",
            "kubectl get pods -w",
            "kubectl get pods -o jsonpath='{.items[*].metadata.name}'",
            "kubectl get all",
            "kubectl describe pod x",
            "kubectl logs -f deploy/x --tail=100",
            "kubectl logs x -c y --previous",
            "kubectl top pods",
            "kubectl top node --no-headers",
            "kubectl version --client",
            "kubectl explain pod.spec",
            "kubectl api-resources",
            "kubectl cluster-info",
            "kubectl config view --minify",
            "kubectl config current-context",
            "kubectl config get-contexts",
            "kubectl rollout status deploy/x",
            "kubectl auth can-i get pods",
            "kubectl delete --help",
            "oc get routes",
            "oc whoami",
        ]);
    }

    #[test]
    fn secrets_endpoints_and_changes_are_not() {
        assert_not_read_only(&[
            "kubectl get secret x -o yaml",
            "kubectl get secrets",
            "kubectl get pods,secrets",
            "kubectl get secret/x",
            "kubectl describe Secrets.v1. x",
            "kubectl get --raw /api",
            "kubectl get -f https://example.com/x.yaml",
            "kubectl get pods -o jsonpath-file=x",
            "kubectl config view --raw",
            "kubectl config use-context x",
            "kubectl cluster-info dump",
            "kubectl --kubeconfig=x get pods",
            "kubectl get pods --kubeconfig x",
            "kubectl --context x get pods",
            "kubectl get pods -s https://x",
            "kubectl get pods --token=x",
            "kubectl get pods --as root",
            "kubectl --user x get pods",
            "kubectl apply -f x",
            "kubectl delete pod x",
            "kubectl exec x -- ls",
            "kubectl create token x",
            "kubectl port-forward x 80",
            "kubectl diff -f x",
            "kubectl rollout restart deploy/x",
            "kubectl get $x",
            "kubectl some-plugin",
            "oc whoami -t",
            "oc project x",
        ]);
    }

    #[test]
    fn tables_are_well_formed() {
        KUBECTL.assert_well_formed();
    }
}
