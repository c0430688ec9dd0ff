//! The programs with irreversible calls.

use super::{
    CHANGES_PACKAGES, CHANGES_REMOTE, CHANGES_RIGHTS, CHANGES_SERVICES,
    IrreversibleCalls::{All, Computed, Unless, UnlessFirst, Verbs, Words},
    IrreversibleProgram, PUBLISHES, REACHES_MACHINE, SENDS, transfers,
};
use crate::commands::services::{cluster, code_host, containers, init};

/// All programs with irreversible calls, grouped by reason.
pub(super) const PROGRAMS: &[IrreversibleProgram] = &[
    // Changes a remote repository or code host.
    row("git", CHANGES_REMOTE, Computed(transfers::defines_alias)),
    row(
        "git",
        CHANGES_REMOTE,
        Verbs(
            "push send-pack http-push send-email imap-send subtree/push lfs/push lfs/lock \
             lfs/unlock svn/dcommit p4/submit annex/sync annex/copy annex/move annex/push \
             cvsexportcommit review",
        ),
    )
    .options(
        "-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source",
        "-p --paginate -P --no-pager --no-replace-objects --bare --literal-pathspecs \
         --glob-pathspecs --noglob-pathspecs --icase-pathspecs --no-optional-locks --no-advice",
    ),
    row(
        "git-push git-send-pack git-send-email git-imap-send git-http-push git-review arc gt",
        CHANGES_REMOTE,
        All,
    ),
    row("git-lfs", CHANGES_REMOTE, Verbs("push lock unlock")),
    row(
        "gh",
        CHANGES_REMOTE,
        Unless(
            "pr/checkout pr/co repo/clone repo/set-default run/download release/download gist/clone \
             browse alias config extension/search attestation/verify",
            code_host::is_reading_verb,
        ),
    )
    .options("-R --repo --hostname", "--help"),
    row(
        "glab",
        CHANGES_REMOTE,
        Unless(
            "mr/list mr/ls mr/view mr/show mr/diff mr/checkout mr/issues mr/approvers issue/list \
             issue/ls issue/view issue/show issue/board/view ci/list ci/ls ci/status ci/view \
             ci/trace ci/get ci/lint ci/config pipeline/list pipeline/status pipeline/get repo/view \
             repo/clone repo/list repo/search repo/contributors repo/archive release/list \
             release/view release/download label/list variable/list variable/get snippet/list \
             snippet/view auth/status config version help completion check-update changelog",
            |_| false,
        ),
    )
    .options("-R --repo -g --group", "--help"),
    row(
        "hub",
        CHANGES_REMOTE,
        Verbs(
            "push pull-request merge create delete fork release issue api sync gist pr ci-status \
             compare",
        ),
    )
    .options("-C -c --git-dir --work-tree", ""),
    row("tea", CHANGES_REMOTE, Unless("*/list */ls", |_| false)),
    row("hg", CHANGES_REMOTE, Verbs("push email"))
        .options("-R --repository --cwd --config", "-q -v -y"),
    row(
        "svn",
        CHANGES_REMOTE,
        Verbs(
            "commit ci import lock unlock propset mkdir delete del remove rm copy cp move mv rename ren",
        ),
    ),
    row("jj", CHANGES_REMOTE, Verbs("git/push gerrit/upload")),
    row("sl", CHANGES_REMOTE, Verbs("push pr ghstack")),
    row(
        "bzr brz fossil darcs",
        CHANGES_REMOTE,
        Verbs("push send sync dpush"),
    ),
    row("cvs", CHANGES_REMOTE, Verbs("commit ci import tag rtag")).options("-d -z", "-q -Q"),
    row(
        "p4",
        CHANGES_REMOTE,
        Verbs("submit shelve delete obliterate"),
    ),
    row("repo", CHANGES_REMOTE, Verbs("upload")),
    // Publishes.
    row(
        "npm pnpm yarn bun",
        PUBLISHES,
        Verbs(
            "publish unpublish dist-tag deprecate undeprecate owner access token team org hook star \
             unstar npm/publish npm/tag",
        ),
    )
    .options(
        "--prefix -C --dir --cwd -w --workspace --filter --registry --userconfig --tag",
        "-r --recursive --silent -s --workspaces -ws",
    ),
    row("np release-it semantic-release goreleaser", PUBLISHES, All),
    row(
        "lerna changeset changesets nx turbo",
        PUBLISHES,
        Verbs("publish release"),
    ),
    row(
        "cargo",
        PUBLISHES,
        Verbs("publish yank owner release smart-release workspaces/publish ws/publish"),
    )
    .options(
        "--config -C -Z --color",
        "-q --quiet -v --verbose --locked --offline --frozen",
    ),
    row(
        "twine uv poetry flit hatch pdm rye maturin",
        PUBLISHES,
        Verbs("upload register publish"),
    )
    .options(
        "--directory --project -C --config-file",
        "-q --quiet -v --verbose -n",
    ),
    row("gem", PUBLISHES, Verbs("push yank owner")),
    row("rake", PUBLISHES, Words("release release:*")),
    row(
        "mvn mvnw",
        PUBLISHES,
        Words("deploy deploy:* release:* nexus-staging:* site-deploy *:deploy"),
    ),
    row(
        "gradle gradlew",
        PUBLISHES,
        Words("publish publish* uploadArchives release closeAndRelease*"),
    ),
    row(
        "sbt",
        PUBLISHES,
        Words("publish publishSigned release sonatype*"),
    ),
    row("lein", PUBLISHES, Verbs("deploy release")),
    row("helm", PUBLISHES, Verbs("push cm-push")),
    row("oras", PUBLISHES, Verbs("push copy cp attach tag")),
    row(
        "crane gcrane regctl",
        PUBLISHES,
        Verbs("push copy cp append mutate delete tag rebase image/copy image/delete tag/delete"),
    ),
    row("skopeo", PUBLISHES, Verbs("copy delete sync"))
        .options("--policy --tmpdir --registries.d", "--debug --insecure-policy"),
    row("buildah img kaniko nerdctl", PUBLISHES, Verbs("push")),
    row("nuget", PUBLISHES, Verbs("push delete add")),
    row("dotnet", PUBLISHES, Verbs("nuget/push nuget/delete")),
    row("dart flutter", PUBLISHES, Verbs("pub/publish pub/lish")),
    row(
        "mix",
        PUBLISHES,
        Verbs("hex.publish hex.retire hex.owner hex.user"),
    ),
    row("hex", PUBLISHES, Verbs("publish retire")),
    row("cabal stack", PUBLISHES, Verbs("upload")),
    row("luarocks", PUBLISHES, Verbs("upload")),
    row("opam dune-release", PUBLISHES, Verbs("publish submit distrib")),
    row("pod", PUBLISHES, Verbs("trunk/push trunk/delete repo/push")),
    row("vsce ovsx", PUBLISHES, Verbs("publish unpublish")),
    row("deno jsr", PUBLISHES, Verbs("publish deploy")),
    row("anaconda conda", PUBLISHES, Verbs("upload remove-package")),
    row("conan", PUBLISHES, Verbs("upload remote/login")),
    row(
        "snapcraft charmcraft rockcraft",
        PUBLISHES,
        Verbs("upload push release promote close"),
    ),
    row("jf jfrog", PUBLISHES, Verbs("rt rt/upload rt/delete publish")),
    row("fastlane eas", PUBLISHES, All),
    // Changes infrastructure or services.
    row(
        "terraform tofu terragrunt",
        CHANGES_SERVICES,
        Verbs(
            "apply destroy import taint untaint refresh force-unlock state/rm state/mv state/push \
             state/replace-provider run-all/apply run-all/destroy workspace/delete login logout \
             cloud",
        ),
    )
    .options("", ""),
    row(
        "pulumi",
        CHANGES_SERVICES,
        Verbs(
            "up update apply destroy import refresh cancel watch stack/rm stack/import state \
             config/set login logout",
        ),
    )
    .options("-C --cwd -s --stack --color", "--non-interactive"),
    row(
        "cdk cdktf sst",
        CHANGES_SERVICES,
        Verbs("deploy destroy apply import bootstrap rollback remove watch gc migrate"),
    )
    .options("-a --app --profile -c --context", ""),
    row(
        "kubectl oc",
        CHANGES_SERVICES,
        Unless("diff kustomize", cluster::is_reading_verb),
    )
    .options(
        "-n --namespace --context --cluster --kubeconfig --user -s --server --token --as -v",
        "--help -A --all-namespaces",
    ),
    row(
        "helm",
        CHANGES_SERVICES,
        Unless(
            "list ls status get show inspect search history hist lint template version env help \
             verify completion create package pull fetch dependency dep repo/list plugin/list",
            |_| false,
        ),
    )
    .options("-n --namespace --kube-context --kubeconfig", "--debug --help"),
    row(
        "aws",
        CHANGES_SERVICES,
        Unless(
            "*/list* */describe* */get-* */head-* */wait */help */search-* */lookup-* */batch-get* \
             */filter-* */query */scan s3/ls s3/presign logs/tail configure/list configure/get help",
            |_| false,
        ),
    )
    .options(
        "--profile --region --output --endpoint-url --query --color --ca-bundle",
        "--debug --no-paginate --no-cli-pager --no-sign-request --no-verify-ssl",
    ),
    row(
        "gcloud bq gsutil az",
        CHANGES_SERVICES,
        UnlessFirst(CLOUD_READS, CLOUD_CHANGES),
    )
    .options(
        "--project --account --configuration --region --zone --subscription --format --output -o",
        "-q --quiet -m",
    ),
    row(
        "docker podman nerdctl docker-compose podman-compose",
        CHANGES_SERVICES,
        Unless(
            "search manifest/inspect compose/config compose/convert",
            containers::is_reading_verb,
        ),
    )
    .options(
        "-H --host -c --context --config -l --log-level --url --connection -f --file -p \
         --project-name --profile --env-file --project-directory",
        "-D --debug --help -r --remote",
    ),
    row(
        "doctl hcloud linode-cli oci ibmcloud exo scw upcloudctl eksctl",
        CHANGES_SERVICES,
        UnlessFirst(CLOUD_READS, CLOUD_CHANGES),
    ),
    row(
        "heroku fly flyctl vercel netlify wrangler firebase railway render supabase serverless sls \
         sam amplify copilot eb kamal cap dokku surge",
        CHANGES_SERVICES,
        Unless(
            "help version list ls status logs local build validate init dev doctor info whoami apps \
             apps/info",
            |_| false,
        ),
    ),
    row("nomad", CHANGES_SERVICES, Verbs("run stop job system node")),
    row(
        "consul vault etcdctl",
        CHANGES_SERVICES,
        Unless(
            "kv/get get read list status members catalog version kv/list",
            |_| false,
        ),
    ),
    row(
        "argocd flux",
        CHANGES_SERVICES,
        UnlessFirst(CLOUD_READS, CLOUD_CHANGES),
    ),
    row("packer", CHANGES_SERVICES, Verbs("build push")),
    row(
        "ansible ansible-playbook ansible-pull ansible-console salt salt-call salt-ssh puppet chef-client \
         knife mco pssh pdsh clush fab nixops morph colmena",
        CHANGES_SERVICES,
        All,
    ),
    row(
        "systemctl loginctl hostnamectl timedatectl localectl launchctl",
        CHANGES_SERVICES,
        Unless("", init::is_reading_verb),
    )
    .options("-t --type -p --property -n --lines -o --output", "--user --system --no-pager"),
    row(
        "crontab at batch atrm systemd-run reboot shutdown halt poweroff init telinit",
        CHANGES_SERVICES,
        All,
    ),
    row("service rc-service", CHANGES_SERVICES, Unless("*/status", |_| false)),
    row(
        "initctl rc-update chkconfig sv supervisorctl",
        CHANGES_SERVICES,
        Unless("status list", |_| false),
    ),
    // Reaches another machine or sends.
    row(
        "ssh slogin mosh autossh sftp ftp lftp tftp ncftp ssh-copy-id sshfs sshpass telnet rsh rlogin \
         rexec nc ncat netcat socat",
        REACHES_MACHINE,
        All,
    ),
    row("scp rsync rcp", REACHES_MACHINE, Computed(transfers::has_remote_path)),
    row(
        "psql pg_restore pg_dump createdb dropdb createuser dropuser pgbench mysql mariadb mysqladmin \
         mysqlimport mysqldump mycli pgcli mongo mongosh mongorestore mongoimport mongodump \
         redis-cli valkey-cli sqlcmd sqlplus clickhouse-client clickhouse cqlsh influx usql isql",
        REACHES_MACHINE,
        Computed(transfers::names_database_host),
    ),
    row(
        "rclone",
        REACHES_MACHINE,
        Unless(
            "ls lsd lsl lsf lsjson tree size check about version help config/show listremotes",
            |_| false,
        ),
    ),
    row(
        "s3cmd s5cmd mc azcopy",
        REACHES_MACHINE,
        Unless("ls la du info stat version help cat list", |_| false),
    ),
    row(
        "mail mailx s-nail sendmail mutt neomutt msmtp ssmtp swaks exim exim4 mpack aerc himalaya",
        SENDS,
        All,
    ),
    row("curl", SENDS, Computed(transfers::curl_sends)),
    row("wget wget2", SENDS, Computed(transfers::wget_sends)),
    row(
        "http https xh xhs httpie",
        SENDS,
        Computed(transfers::httpie_sends),
    ),
    row("websocat wscat grpcurl evans mosquitto_pub kafkacat kcat", SENDS, All),
    // Leaves the sandbox.
    row(
        "sudo doas su pkexec sudoedit runuser run0 please",
        CHANGES_RIGHTS,
        All,
    ),
    row(
        "apt apt-get aptitude dpkg yum dnf microdnf rpm zypper pacman yay paru apk brew port snap \
         flatpak emerge xbps-install xbps-remove nix-env nixos-rebuild home-manager eopkg swupd pkg \
         pkg_add pkg_delete opkg softwareupdate apt-mark add-apt-repository rpm-ostree tdnf slackpkg",
        CHANGES_PACKAGES,
        All,
    ),
];

const fn row(
    names: &'static str,
    reason: &'static str,
    calls: super::IrreversibleCalls,
) -> IrreversibleProgram {
    IrreversibleProgram::new(names, reason, calls)
}

/// Verbs of cloud clients that only read.
const CLOUD_READS: &str = "list ls describe describe-* get get-* list-* show show-* info version help \
                           status logs read tail cat du stat hash diff history query head \
                           print-settings print-access-boundary";

/// Verbs of cloud clients that make a change, so that a name after them is not treated as a verb.
const CLOUD_CHANGES: &str = "create create-* delete delete-* update update-* add add-* remove remove-* \
                             set set-* unset deploy start stop reset restart reboot patch import \
                             export enable disable activate revoke ssh scp cp mv rm rb mb rsync sync \
                             submit run execute invoke call publish push apply bind attach attach-* \
                             detach detach-* move resize rollback cancel approve reject login logout \
                             configure init clear replace insert load mk extract undelete restore \
                             snapshot suspend resume upgrade install uninstall terminate wait purge \
                             rename copy connect assign unassign grant scale promote failover drain \
                             rotate upload download acl iam notification versioning web signurl";
