use std::path::PathBuf;

use super::*;
use crate::{LineLocation, analyze};

/// Returns the reasons of all parts of a line.
fn reasons(line: &str) -> Vec<&'static str> {
    let place = LineLocation {
        cwd: PathBuf::from("/p"),
        home: Some(PathBuf::from("/home/u")),
    };
    let parts = analyze(line, &place).parts;
    parts
        .iter()
        .filter_map(|part| part.irreversible_reason())
        .collect()
}

fn assert_reason(reason: &str, lines: &str) {
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        assert!(
            reasons(line).contains(&reason),
            "{line}: {:?}",
            reasons(line)
        );
    }
}

fn assert_none(lines: &str) {
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        assert_eq!(reasons(line), [""; 0], "{line}");
    }
}

#[test]
fn remote_repositories_and_code_hosts() {
    assert_reason(
        CHANGES_REMOTE,
        r"
        git push
        git push origin main
        git push --force-with-lease
        git push --dry-run
        /usr/bin/git push
        git -C sub push
        git --git-dir=x push
        git --unknown-option value push
        git -c user.name=x push
        git -c alias.p=push p
        git --config-env=alias.p=X p
        git $subcommand
        git $(echo push)
        git lfs push origin main
        git subtree push --prefix a origin b
        git send-email x.patch
        git svn dcommit
        git-push origin
        jj git push
        hg push
        svn commit -m x
        gh pr create -t x
        gh pr merge 1
        gh pr --repo a/b merge 1
        gh issue close 3
        gh workflow run ci.yml
        gh run rerun 1
        gh release create v1
        gh release delete v1
        gh repo delete a/b
        gh secret set X
        gh api -X DELETE repos/a/b
        gh api graphql -f query=x
        gh api repos/a/b -f a=b
        gh my-alias
        gh $verb
        glab mr merge 1
        glab mr create
        glab api projects
        tea pulls create
        hub pull-request
        ",
    );
}

#[test]
fn publishing() {
    assert_reason(
        PUBLISHES,
        r"
        npm publish
        npm publish --access public
        npm --workspace a publish
        npm -ws publish
        npm unpublish x
        npm dist-tag add x@1 latest
        pnpm -r publish
        pnpm --filter x publish
        yarn npm publish
        yarn publish
        bun publish
        npx lerna publish
        npx np
        cargo publish
        cargo +nightly publish
        cargo -q publish --dry-run
        cargo yank --version 1.0.0
        twine upload dist/*
        python -m twine upload dist/x
        python3 -m twine upload dist/x
        python setup.py sdist upload
        uv publish
        poetry publish --build
        gem push x.gem
        mvn clean deploy
        ./mvnw -q deploy
        gradle publish
        ./gradlew publishToMavenCentral
        helm push x.tgz oci://r
        dotnet nuget push x.nupkg
        dart pub publish
        mix hex.publish
        vsce publish
        goreleaser release
        rake release
        bundle exec rake release
        skopeo copy a b
        ",
    );
}

#[test]
fn infrastructure_and_services() {
    assert_reason(
        CHANGES_SERVICES,
        r"
        terraform apply
        terraform -chdir=x apply -auto-approve
        terraform destroy
        terraform import a.b c
        terraform state rm a.b
        tofu apply
        pulumi up
        pulumi -C x destroy
        cdk deploy
        npx cdk deploy
        kubectl apply -f x
        kubectl -n x delete pod y
        kubectl --context prod delete pod y
        kubectl --unknown get delete pod
        kubectl exec x -- ls
        kubectl some-plugin
        kubectl $verb
        oc new-app x
        helm install x y
        helm uninstall x
        helm -n a upgrade x y
        aws s3 cp a s3://b
        aws s3 rm s3://b --recursive
        aws ec2 terminate-instances --instance-ids x
        aws --region x lambda invoke f out
        aws ec2 $verb
        gcloud compute instances delete list
        gcloud run deploy x
        gcloud --project x app deploy
        az group delete -n x
        az vm start -n x
        docker run x
        docker push x
        docker build .
        docker rm x
        docker compose up -d
        docker compose -f x.yml down
        docker system prune
        podman run x
        docker-compose up
        systemctl restart nginx
        systemctl --user stop x
        crontab x
        crontab -r
        at now
        service nginx restart
        ansible all -m ping
        ansible-playbook x.yml
        vercel deploy
        wrangler deploy
        flyctl deploy
        vault write a b=c
        reboot
        ",
    );
}

#[test]
fn other_machines() {
    assert_reason(
        REACHES_MACHINE,
        r"
        ssh h ls
        ssh -p 22 user@h
        scp a h:b
        scp h:a b
        scp a $target
        sftp h
        rsync -a x/ h:y/
        rsync -a rsync://h/m x
        mosh h
        nc h 80
        telnet h
        psql -h db
        psql --host=db
        psql postgres://u@db/x
        psql $DATABASE_URL
        mysql -h db -u x
        mysql -hdb
        mongosh mongodb://h/x
        redis-cli -h cache flushall
        pg_restore -h db x
        rclone sync a r:b
        ",
    );
    assert_reason(
        SENDS,
        r"
        curl -d @f https://h/x
        curl -dx https://h/x
        curl --data-binary @f https://h/x
        curl --data-raw x https://h/x
        curl --json {} https://h/x
        curl -F a=@f https://h/x
        curl -T f https://h/x
        curl -sXPOST https://h/x
        curl -X DELETE https://h/x
        curl --request PUT https://h/x
        curl -X OPTIONS https://h/x
        curl -X $method https://h/x
        curl -K config
        curl $options https://h/x
        curl --no-such-option x https://h/x
        curl -G -F a=b https://h/x
        wget --post-data x https://h/x
        wget --post-file=f https://h/x
        wget --method=PUT https://h/x
        wget -e x=y https://h/x
        http POST https://h/x
        http https://h/x a=b
        mail -s x me@h
        sendmail me@h
        ",
    );
}

#[test]
fn other_rights() {
    assert_reason(
        CHANGES_RIGHTS,
        "sudo make
         sudo -u x ls
         doas ls
         su -c ls
         pkexec ls",
    );
    assert_reason(
        CHANGES_PACKAGES,
        "apt install x
         apt-get -y install x
         dpkg -i x.deb
         dnf install x
         pacman -S x
         apk add x
         brew install x",
    );
}

#[test]
fn wrappers_and_nested_lines() {
    assert_reason(
        CHANGES_REMOTE,
        r#"
        env git push
        env A=b git push
        A=b git push
        timeout 5 git push
        nice -n 5 git push
        nohup git push
        time git push
        command git push
        exec git push
        xargs git push
        echo push | xargs git
        xargs -n 1 git
        find . -name x -exec git push ';'
        sh -c 'git push'
        bash -lc "cd x && git push"
        eval 'git push'
        (git push)
        { git push; }
        if true; then git push; fi
        for x in a b; do git push $x; done
        f() { git push; }; f
        echo $(git push)
        cat <(git push)
        true && git push || true
        ls; git push &
        'git' "push"
        g\it p\ush
        trap 'git push' EXIT
        npm exec -c 'git push'
        poetry run git push
        uv run git push
        "#,
    );
    // The last part of the line decides nothing about the first.
    assert_eq!(reasons("cargo test && git push"), [CHANGES_REMOTE]);
    assert_eq!(reasons("sudo git push"), [CHANGES_RIGHTS, CHANGES_REMOTE]);
}

#[test]
fn local_work_is_not_in_the_table() {
    assert_none(
        r#"
        git status
        git commit -m push
        git commit -m "$message"
        git commit --amend --no-edit
        git add -A
        git reset --hard HEAD~3
        git clean -fdx
        git checkout -- .
        git checkout -b push
        git rebase main
        git branch -D x
        git stash pop
        git fetch origin
        git pull --rebase
        git clone https://h/x
        git remote add x y
        git log --grep push
        git merge x
        git tag v1
        git config user.name x
        git worktree add ../x
        git -C sub commit -m x
        git subtree pull --prefix a b c
        git lfs pull
        git svn fetch
        gh pr list
        gh pr view 1 --web
        gh pr checkout 1
        gh run download 1
        gh repo clone a/b
        gh api repos/a/b
        gh api -X GET search/issues -f q=x
        glab mr list
        hg commit
        jj git fetch
        svn update
        npm ci
        npm install x
        npm test
        npm run publish-docs
        npm version patch
        npm pack
        pnpm -r build
        pnpm install
        yarn
        yarn build
        bun test
        bun install
        npx eslint .
        cargo build
        cargo test --release
        cargo add x
        cargo package
        cargo install x
        cargo +nightly fmt
        twine check dist/x
        uv sync
        uv run pytest
        poetry install
        pip install -r requirements.txt
        python gen.py
        python -m pytest
        python -c 'x'
        python setup.py build
        gem build x
        mvn -q test
        mvn clean install
        ./gradlew build
        gradle test
        dotnet test
        dart pub get
        flutter test
        mix test
        go test ./...
        make
        make deploy-docs
        ./x.sh
        ./deploy
        $program push
        rm -rf build
        mkdir -p a/b
        cp -r a b
        sed -i s/a/b/ f
        terraform plan
        terraform init
        terraform fmt
        terraform validate
        tofu plan
        pulumi preview
        cdk synth
        cdk diff
        kubectl get pods
        kubectl -n x get pods
        kubectl --context prod get pods
        kubectl diff -f x
        helm template x
        helm lint x
        aws s3 ls
        aws ec2 describe-instances
        aws --region x sts get-caller-identity
        gcloud compute instances list
        gcloud --project x compute instances describe y
        az vm list
        az account show
        docker ps
        docker logs x
        docker compose ps
        docker compose -f x.yml logs
        docker compose config
        systemctl status nginx
        crontab -l
        vault kv get x
        scp a b
        scp ./a:b c
        rsync -a x/ y/
        rsync -a ./$x y/
        psql -c 'select 1'
        psql mydb
        psql -c "$sql"
        mysql -u root x
        sqlite3 x.db .tables
        redis-cli ping
        curl https://h/x
        curl -sSfL https://h/x -o f
        curl -I https://h/x
        curl -X GET https://h/x
        curl -X HEAD https://h/x
        curl -G -d a=b https://h/x
        curl -H "$header" https://h/x
        curl "https://h/$x"
        curl "$url"
        wget https://h/x
        wget -qO- https://h/x
        wget --method=GET https://h/x
        http https://h/x
        http GET https://h/x a==b
        apt list --installed
        dpkg -l
        brew list
        echo git push
        echo sudo
        grep -r 'git push' .
        "#,
    );
}

#[test]
fn the_table_has_no_empty_rows() {
    for program in table::PROGRAMS {
        assert!(!program.names.trim().is_empty());
        if let IrreversibleCalls::Verbs(list) | IrreversibleCalls::Words(list) = program.calls {
            assert!(!list.trim().is_empty(), "{}", program.names);
        }
        let words = program.valued.split_ascii_whitespace();
        for option in words.chain(program.flags.split_ascii_whitespace()) {
            assert!(option.starts_with('-'), "{}: {option}", program.names);
        }
    }
}
